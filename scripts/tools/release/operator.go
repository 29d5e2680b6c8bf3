package main

import "fmt"

// The label by which the Cluster API Operator finds the ConfigMap of a provider.
const componentsLabel = "provider-components"

// operator is the object by which the Cluster API Operator installs the provider from the release page.
func (p provider) operator(repository, version string) ([]byte, error) {
	url := fmt.Sprintf("%s/releases/%s/%s", repository, version, p.Components)
	return toYAML([]object{p.namespace(), p.operatorProvider(version, map[string]any{"url": url})})
}

// operatorAirGapped is the same from a ConfigMap, without access to the release page.
func (p provider) operatorAirGapped(version string, components, metadata []byte) ([]byte, error) {
	labels := map[string]any{componentsLabel: p.Label}
	source := object{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name": p.Label + "-" + version, "namespace": p.Namespace,
			"labels": map[string]any{componentsLabel: p.Label, "provider.cluster.x-k8s.io/version": version},
		},
		"data": map[string]any{"components": string(components), "metadata": string(metadata)},
	}
	selector := map[string]any{"selector": map[string]any{"matchLabels": labels}}
	return toYAML([]object{p.namespace(), source, p.operatorProvider(version, selector)})
}

func (p provider) namespace() object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.Namespace}}
}

func (p provider) operatorProvider(version string, fetch map[string]any) object {
	return object{
		"apiVersion": "operator.cluster.x-k8s.io/v1alpha2",
		"kind":       p.Kind,
		"metadata":   map[string]any{"name": p.Name, "namespace": p.Namespace},
		"spec":       map[string]any{"version": version, "fetchConfig": fetch},
	}
}
