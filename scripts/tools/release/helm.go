package main

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// What the templates of a kind are rendered for.
var conditions = map[string]string{
	"CustomResourceDefinition": "crds.enabled",
	"Namespace":                "namespace.create",
	"NetworkPolicy":            "networkPolicy.enabled",
	"PodDisruptionBudget":      "podDisruptionBudget.enabled",
}

// Fields of the pod that are values.
var podFields = []struct{ name, about string }{
	{"affinity", "Affinity of the pods."},
	{"imagePullSecrets", "Secrets with credentials for the registry of the image."},
	{"nodeSelector", "Labels of the nodes that may run the pods."},
	{"priorityClassName", "PriorityClass of the pods."},
	{"tolerations", "Taints that the pods tolerate."},
	{"topologySpreadConstraints", "Spread of the pods over nodes and zones."},
}

// What is added to lists of the pod and of its container.
var lists = []struct {
	name, value, about string
	ofContainer        bool
}{
	{"args", "extraArgs", "More arguments of the container.", true},
	{"env", "extraEnv", "More environment variables of the container, such as HTTPS_PROXY and SSL_CERT_FILE.", true},
	{"volumeMounts", "extraVolumeMounts", "More volume mounts of the container.", true},
	{"volumes", "extraVolumes", "More volumes of the pods.", false},
}

// chartVersion is the version as charts write it.
func chartVersion(version string) string {
	return strings.TrimPrefix(version, "v")
}

// helm is the files of the provider's Helm chart. Rendered in the namespace of the kustomization with the values of values.yaml,
// it has the same objects, except for the namespace.
func (p provider) helm(objects []object, repository, version string) (map[string][]byte, error) {
	objects, err := deepCopy(objects)
	if err != nil {
		return nil, err
	}
	template := &template{}
	values, err := p.values(template, objects, version)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if files["values.yaml"], err = valuesFile(values); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = valuesSchema(values); err != nil {
		return nil, err
	}
	chart := map[string]any{
		"apiVersion": "v2", "name": p.Chart, "type": "application", "description": p.Description,
		"version": chartVersion(version), "appVersion": version, "home": repository, "sources": []string{repository},
		"annotations": map[string]string{"artifacthub.io/license": "Apache-2.0"},
	}
	if files["Chart.yaml"], err = yaml.Marshal(chart); err != nil {
		return nil, err
	}
	for _, one := range objects {
		text, err := toYAML([]object{one})
		if err != nil {
			return nil, err
		}
		rendered := template.render(string(text))
		if one.kind() != "CustomResourceDefinition" {
			rendered = strings.ReplaceAll(rendered, p.Namespace, "{{ .Release.Namespace }}")
		}
		if condition, ok := conditions[one.kind()]; ok {
			rendered = fmt.Sprintf("{{- if .Values.%s }}\n%s{{- end }}\n", condition, rendered)
		}
		name := path.Join("templates", strings.ToLower(one.kind())+".yaml")
		if before, ok := files[name]; ok {
			rendered = string(before) + "---\n" + rendered
		}
		files[name] = []byte(rendered)
	}
	return files, nil
}

// values makes values of what users set, and answers them with the defaults of the kustomization.
func (p provider) values(template *template, objects []object, version string) ([]value, error) {
	deployment, err := only(objects, "Deployment")
	if err != nil {
		return nil, err
	}
	container, err := container(objects)
	if err != nil {
		return nil, err
	}
	repository, tag := splitImage(fmt.Sprint(container["image"]))
	if tag == version {
		tag = ""
	}
	values := []value{{
		name:    "image",
		about:   "The image. Without a tag, that of the version of the chart; a digest takes precedence over the tag.",
		initial: map[string]any{"repository": repository, "tag": tag, "digest": "", "pullPolicy": container["imagePullPolicy"]},
		closed:  true,
	}}
	container["image"] = template.value("{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:" +
		"{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}")
	container["imagePullPolicy"] = template.value("{{ .Values.image.pullPolicy }}")

	settings := map[string]any{}
	for _, setting := range p.Settings {
		initial, err := setting.set(container, func(before, _ string) string {
			return template.value(fmt.Sprintf("{{ printf %q .Values.settings.%s | quote }}", before+"%v", setting.Value))
		})
		if err != nil {
			return nil, err
		}
		settings[setting.Value] = settingOf(initial)
	}
	values = append(values, value{"settings", "Settings of the program, as docs/reference/variables.md describes them.", settings, true})

	spec := at(deployment, "spec")
	values = append(values, value{"replicas", "Number of pods.", spec["replicas"], false})
	spec["replicas"] = template.value("{{ .Values.replicas }}")
	values = append(values, value{"resources", "Resources of the container.", container["resources"], false})
	container["resources"] = template.value("{{ toJson .Values.resources }}")
	pod := at(spec, "template", "spec")
	for _, field := range podFields {
		values = append(values, value{field.name, field.about, initialOf(pod, field.name), false})
		template.optional(pod, field.name, field.name)
	}
	for _, list := range lists {
		holder := pod
		if list.ofContainer {
			holder = container
		}
		if err := template.more(holder, list.name, list.value); err != nil {
			return nil, err
		}
		values = append(values, value{list.value, list.about, []any{}, false})
	}
	about := "Annotations of the service account, such as eks.amazonaws.com/role-arn."
	values = append(values, value{"serviceAccount", about, map[string]any{"annotations": map[string]any{}}, true})
	return append(values, p.conditionValues(template, objects)...), nil
}

// conditionValues makes values of whether objects of some kinds are part of the installation.
func (p provider) conditionValues(template *template, objects []object) []value {
	var values []value
	kinds := map[string]bool{}
	for _, object := range objects {
		metadata := at(object, "metadata")
		switch object.kind() {
		case "CustomResourceDefinition":
			keep := "{{- if .Values.crds.keep }}\nannotations:\n  helm.sh/resource-policy: keep\n{{- end }}"
			metadata[template.lines(keep)] = ""
		case "ServiceAccount":
			template.optional(metadata, "annotations", "serviceAccount.annotations")
		}
		if kinds[object.kind()] {
			continue
		}
		kinds[object.kind()] = true
		switch object.kind() {
		case "CustomResourceDefinition":
			about := "The definitions, and whether they outlive the release: without them all objects of their kinds are deleted."
			values = append(values, value{"crds", about, map[string]any{"enabled": true, "keep": true}, true})
		case "Namespace":
			about := "Whether the release has its namespace, with the labels of Pod Security; not with `--create-namespace`."
			values = append(values, value{"namespace", about, map[string]any{"create": false}, true})
		case "NetworkPolicy":
			about := "Whether the release has a NetworkPolicy, with the flows of docs/users/network-policies.md."
			values = append(values, value{"networkPolicy", about, map[string]any{"enabled": true}, true})
		case "PodDisruptionBudget":
			about := "Whether the release has a PodDisruptionBudget. With one replica it does not block drains."
			values = append(values, value{"podDisruptionBudget", about, map[string]any{"enabled": true}, true})
		}
	}
	return values
}

// splitImage separates the tag, which follows the last colon unless that belongs to the port of the registry.
func splitImage(image string) (repository, tag string) {
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, ""
}

// initialOf is the default of a field of the pod, and an empty one of its type where the pod has none.
func initialOf(pod map[string]any, name string) any {
	if initial, ok := pod[name]; ok {
		return initial
	}
	switch name {
	case "affinity", "nodeSelector":
		return map[string]any{}
	case "priorityClassName":
		return ""
	default:
		return []any{}
	}
}
