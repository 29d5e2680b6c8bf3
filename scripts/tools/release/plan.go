package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// The content of config/release.yaml, which describes the fields.
type plan struct {
	Repository string     `json:"repository"`
	Providers  []provider `json:"providers"`
}

type provider struct {
	Label             string    `json:"label"`
	Kind              string    `json:"kind"`
	Name              string    `json:"name"`
	Source            string    `json:"source"`
	Components        string    `json:"components"`
	Namespace         string    `json:"namespace"`
	NamespaceVariable string    `json:"namespaceVariable"`
	RoleVariable      string    `json:"roleVariable"`
	Chart             string    `json:"chart"`
	Description       string    `json:"description"`
	Files             []string  `json:"files"`
	Settings          []setting `json:"settings"`
}

// One setting of the container: a flag, or an environment variable.
type setting struct {
	Flag     string `json:"flag"`
	Env      string `json:"env"`
	Variable string `json:"variable"`
	Value    string `json:"value"`
}

func readPlan(path string) (plan, error) {
	var plan plan
	text, err := os.ReadFile(path)
	if err != nil {
		return plan, err
	}
	if err := yaml.UnmarshalStrict(text, &plan); err != nil {
		return plan, fmt.Errorf("%s: %w", path, err)
	}
	return plan, nil
}
