package main

import (
	"fmt"
	"regexp"
	"strings"
)

// Names that stand for parts of a Helm template in objects, until these are text: a template is not YAML.
type template struct {
	parts []string
}

var (
	// A placeholder that is a whole value.
	valuePlaceholder = regexp.MustCompile(`HELM_VALUE_(\d+)_`)
	// One that is a line of its own, as a member with an empty value or as an item of a list.
	linePlaceholder = regexp.MustCompile(`(?m)^( *)(?:- )?HELM_LINES_(\d+)_(?:: "")?\n`)
)

// value stands for an expression.
func (t *template) value(expression string) string {
	t.parts = append(t.parts, expression)
	return fmt.Sprintf("HELM_VALUE_%d_", len(t.parts)-1)
}

// lines stands for lines, which get the indentation of the placeholder.
func (t *template) lines(lines string) string {
	t.parts = append(t.parts, lines)
	return fmt.Sprintf("HELM_LINES_%d_", len(t.parts)-1)
}

// optional adds a member that is absent while its value is empty.
func (t *template) optional(holder map[string]any, name, value string) {
	delete(holder, name)
	holder[t.lines(fmt.Sprintf("{{- with .Values.%s }}\n%s: {{ toJson . }}\n{{- end }}", value, name))] = ""
}

// more adds what a value lists to the items of a list.
func (t *template) more(holder map[string]any, name, value string) error {
	items, _ := holder[name].([]any)
	if len(items) == 0 {
		return fmt.Errorf("%s has no items", name)
	}
	holder[name] = append(items, t.lines(fmt.Sprintf("{{- range .Values.%s }}\n- {{ toJson . }}\n{{- end }}", value)))
	return nil
}

// render replaces the placeholders. What looks like a template in the objects themselves is quoted.
func (t *template) render(text string) string {
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	part := func(match []string) string {
		var index int
		fmt.Sscan(match[len(match)-1], &index)
		return t.parts[index]
	}
	text = linePlaceholder.ReplaceAllStringFunc(text, func(found string) string {
		match := linePlaceholder.FindStringSubmatch(found)
		indent := match[1]
		return indent + strings.ReplaceAll(part(match), "\n", "\n"+indent) + "\n"
	})
	return valuePlaceholder.ReplaceAllStringFunc(text, func(found string) string {
		return part(valuePlaceholder.FindStringSubmatch(found))
	})
}
