package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The image in the tree, which a release replaces.
const developmentTag = ":dev"

// A Kubernetes object.
type object map[string]any

// render builds a kustomization, and sets the image of its Deployment.
func render(source, image string) ([]object, error) {
	options := krusty.MakeDefaultOptions()
	// The order of the program: what others need comes first.
	options.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), source)
	if err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object object
		if err := yaml.Unmarshal([]byte(document), &object, useNumber); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	container, err := container(objects)
	if err != nil {
		return nil, err
	}
	if before, _ := container["image"].(string); !strings.HasSuffix(before, developmentTag) {
		return nil, fmt.Errorf("the image is %s, not one that ends with %s", before, developmentTag)
	}
	container["image"] = image
	return objects, nil
}

func useNumber(decoder *json.Decoder) *json.Decoder {
	decoder.UseNumber()
	return decoder
}

// toYAML writes objects as kustomize does.
func toYAML(objects []object) ([]byte, error) {
	var documents []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, string(text))
	}
	return []byte(strings.Join(documents, "---\n")), nil
}

// deepCopy copies objects, so that each form of the release changes its own.
func deepCopy(objects []object) ([]object, error) {
	var copies []object
	text, err := json.Marshal(objects)
	if err != nil {
		return nil, err
	}
	decoder := useNumber(json.NewDecoder(strings.NewReader(string(text))))
	return copies, decoder.Decode(&copies)
}

// at follows names to a nested object; an absent one is nil.
func at(object map[string]any, names ...string) map[string]any {
	for _, name := range names {
		object, _ = object[name].(map[string]any)
	}
	return object
}

func (o object) kind() string {
	kind, _ := o["kind"].(string)
	return kind
}

func (o object) name() string {
	name, _ := at(o, "metadata")["name"].(string)
	return name
}

// isClusterScoped is whether the name has to begin with the namespace.
func (o object) isClusterScoped() bool {
	_, namespaced := at(o, "metadata")["namespace"]
	return !namespaced && o.kind() != "Namespace" && o.kind() != "CustomResourceDefinition"
}

// only is the one object of a kind.
func only(objects []object, kind string) (object, error) {
	var found []object
	for _, object := range objects {
		if object.kind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d objects of kind %s instead of one", len(found), kind)
	}
	return found[0], nil
}

// container is the one container of the Deployment.
func container(objects []object) (map[string]any, error) {
	deployment, err := only(objects, "Deployment")
	if err != nil {
		return nil, err
	}
	containers, _ := at(deployment, "spec", "template", "spec")["containers"].([]any)
	if len(containers) != 1 {
		return nil, fmt.Errorf("the Deployment has %d containers instead of one", len(containers))
	}
	container, _ := containers[0].(map[string]any)
	return container, nil
}

// set replaces the default of a setting by what `with` makes of it, and answers the default.
func (s setting) set(container map[string]any, with func(before, value string) string) (string, error) {
	args, _ := container["args"].([]any)
	for i, arg := range args {
		text, _ := arg.(string)
		if value, ok := strings.CutPrefix(text, s.Flag+"="); ok && s.Flag != "" {
			args[i] = with(s.Flag+"=", value)
			return value, nil
		}
	}
	env, _ := container["env"].([]any)
	for _, one := range env {
		variable, _ := one.(map[string]any)
		if value, ok := variable["value"].(string); ok && s.Env != "" && variable["name"] == s.Env {
			variable["value"] = with("", value)
			return value, nil
		}
	}
	return "", fmt.Errorf("the container has no %s%s with a default", s.Flag, s.Env)
}
