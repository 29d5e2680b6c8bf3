package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// One value of the chart, with what users read of it.
type value struct {
	name    string
	about   string
	initial any
	// Whether only the members of the default are known.
	closed bool
}

// valuesFile is values.yaml: each value after its description.
func valuesFile(values []value) ([]byte, error) {
	var text strings.Builder
	for _, value := range values {
		entry, err := yaml.Marshal(map[string]any{value.name: value.initial})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "# %s\n%s\n", value.about, entry)
	}
	return []byte(strings.TrimSuffix(text.String(), "\n")), nil
}

// valuesSchema rejects names that are not known, and values of another type.
func valuesSchema(values []value) ([]byte, error) {
	properties := map[string]any{
		// Of charts that this one is part of.
		"global": map[string]any{"type": "object"},
	}
	for _, value := range values {
		properties[value.name] = schemaOf(value.initial, value.closed)
	}
	schema := map[string]any{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	return append(text, '\n'), err
}

func schemaOf(initial any, closed bool) map[string]any {
	switch initial := initial.(type) {
	case map[string]any:
		if !closed {
			return map[string]any{"type": "object"}
		}
		members := map[string]any{}
		for name, member := range initial {
			members[name] = schemaOf(member, false)
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": members}
	case []any:
		return map[string]any{"type": "array"}
	case bool:
		return map[string]any{"type": "boolean"}
	case json.Number, int:
		return map[string]any{"type": "number", "minimum": 0}
	default:
		return map[string]any{"type": "string"}
	}
}

// settingOf is the default of a setting in the type that users expect in values.
func settingOf(text string) any {
	switch {
	case text == "true" || text == "false":
		return text == "true"
	case json.Valid([]byte(text)):
		return json.Number(text)
	default:
		return text
	}
}
