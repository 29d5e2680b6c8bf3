// The answers against Go's own template engine with all of sprig, and against those that are recorded for tests in Rust.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	sigsjson "sigs.k8s.io/json"
)

var update = flag.Bool("update", false, "record the texts in testdata/golden.json")

const golden = "testdata/golden.json"

type cases struct {
	Data  json.RawMessage `json:"data"`
	Cases []*testCase     `json:"cases"`
}

type testCase struct {
	Template string `json:"template"`
	Text     string `json:"text,omitempty"`
	Error    string `json:"error,omitempty"`
}

func load(t *testing.T) cases {
	t.Helper()
	time.Local = time.UTC
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var all cases
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// plain renders with Go's engine and all of sprig, without anything of this program.
func plain(t *testing.T, text string, data json.RawMessage) (string, error) {
	t.Helper()
	var value any
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &value); err != nil {
		t.Fatal(err)
	}
	parsed, err := template.New("golden").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return "", err
	}
	var buffer bytes.Buffer
	err = parsed.Execute(&buffer, value)
	return buffer.String(), err
}

func rendered(text string, data json.RawMessage, kept map[string]json.RawMessage) answer {
	return respond(request{Render: &renderRequest{Name: "golden", Template: text, Data: data, Kept: kept}})
}

func TestTextsAreThoseOfGo(t *testing.T) {
	all := load(t)
	for _, one := range all.Cases {
		text, err := plain(t, one.Template, all.Data)
		message := ""
		if err != nil {
			text, message = "", failed("", err).Error.Message
		}
		is := rendered(one.Template, all.Data, nil)
		if (is.Text == nil) != (err != nil) || (is.Error == nil) != (err == nil) {
			t.Errorf("%s: %v instead of %q, %v", one.Template, is, text, err)
		} else if err != nil && is.Error.Message != message {
			t.Errorf("%s: the error %q instead of %q", one.Template, is.Error.Message, message)
		} else if err == nil && *is.Text != text {
			t.Errorf("%s: %q instead of %q", one.Template, *is.Text, text)
		}
		if *update {
			one.Text, one.Error = text, message
		}
		if one.Text != text || one.Error != message {
			t.Errorf("%s: %q, %q are recorded instead of %q, %q", one.Template, one.Text, one.Error, text, message)
		}
	}
	if *update {
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, buffer.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryDeterministicFunctionHasACase(t *testing.T) {
	var templates strings.Builder
	for _, one := range load(t).Cases {
		templates.WriteString(one.Template + "\n")
	}
	for name := range sprig.TxtFuncMap() {
		word := regexp.MustCompile(`(^|[^a-zA-Z0-9_."$])` + name + `($|[^a-zA-Z0-9_])`)
		if !slices.Contains(kept, name) && !slices.Contains(rejected, name) && !word.MatchString(templates.String()) {
			t.Errorf("no case has the function %s", name)
		}
	}
}

// The functions whose first result is kept: a second rendering returns the same, and another one without it does not have to.
func TestFirstResultsAreKept(t *testing.T) {
	templates := map[string]string{
		"ago":                      `{{ ago now }}`,
		"bcrypt":                   `{{ bcrypt "a" }}`,
		"date":                     `{{ now | date "2006-01-02T15:04:05.999999999" }}`,
		"dateInZone":               `{{ dateInZone "05.999999999" (now) "UTC" }}`,
		"date_in_zone":             `{{ date_in_zone "05.999999999" (now) "UTC" }}`,
		"durationRound":            `{{ durationRound "2h10m5s" }}`,
		"encryptAES":               `{{ encryptAES "0123456789abcdef" "text" }}`,
		"genCA":                    `{{ $ca := genCA "ca" 1 }}{{ $ca.Cert }}{{ $ca.Key }}`,
		"genCAWithKey":             `{{ $key := genPrivateKey "ecdsa" }}{{ (genCAWithKey "ca" 1 $key).Cert }}`,
		"genPrivateKey":            `{{ genPrivateKey "ecdsa" }}`,
		"genSelfSignedCert":        `{{ (genSelfSignedCert "a" nil nil 1).Cert }}`,
		"genSelfSignedCertWithKey": `{{ (genSelfSignedCertWithKey "a" nil nil 1 (genPrivateKey "ecdsa")).Cert }}`,
		"genSignedCert":            `{{ (genSignedCert "a" nil (list "a.example") 1 (genCA "ca" 1)).Cert }}`,
		"genSignedCertWithKey":     `{{ (genSignedCertWithKey "a" nil nil 1 (genCA "ca" 1) (genPrivateKey "ecdsa")).Cert }}`,
		"htmlDate":                 `{{ htmlDate now }}`,
		"htmlDateInZone":           `{{ htmlDateInZone (now) "UTC" }}`,
		"htpasswd":                 `{{ htpasswd "user" "password" }}`,
		"now":                      `{{ now }}`,
		"randAlpha":                `{{ randAlpha 20 }}{{ randAlpha 20 }}`,
		"randAlphaNum":             `{{ range until 3 }}{{ randAlphaNum 20 }} {{ end }}`,
		"randAscii":                `{{ randAscii 20 }}`,
		"randBytes":                `{{ randBytes 20 }}`,
		"randInt":                  `{{ randInt 0 1000000000 }}{{ randInt 0 1000000000 | add 1 }}`,
		"randNumeric":              `{{ randNumeric 20 }}`,
		"shuffle":                  `{{ shuffle "abcdefghijklmnopqrstuvwxyz" }}`,
		"uuidv4":                   `{{ uuidv4 }}{{ uuidv4 }}`,
	}
	data := json.RawMessage(`{}`)
	for _, name := range kept {
		text, ok := templates[name]
		if !ok {
			t.Errorf("no template has the function %s", name)
			continue
		}
		first := rendered(text, data, nil)
		if first.Error != nil || len(first.Kept) == 0 {
			t.Errorf("%s: %v", name, first)
			continue
		}
		again := rendered("{{/* another part changes */}}"+text, data, first.Kept)
		if again.Text == nil || *again.Text != *first.Text || !reflect.DeepEqual(again.Kept, first.Kept) {
			t.Errorf("%s: %v after %v", name, again, first)
		}
	}
	halves := strings.Fields(*rendered(templates["randAlphaNum"], data, nil).Text)
	if halves[0] == halves[1] || halves[1] == halves[2] {
		t.Errorf("each call has a result of its own: %v", halves)
	}
}

func TestRejectedFunctionsSaySo(t *testing.T) {
	for _, name := range rejected {
		is := rendered(`{{ `+name+` "HOME" }}`, json.RawMessage(`{}`), nil)
		if is.Error == nil || !strings.Contains(is.Error.Message, name+" is not available in valuesTemplate") {
			t.Errorf("%s: %v", name, is)
		}
	}
}

func TestFieldsNamedAsInGoAreRejected(t *testing.T) {
	data := json.RawMessage(`{"Cluster": {"metadata": {"name": "a"}, "spec": {"Kind": "b"}}}`)
	for text, message := range map[string]string{
		`{{ .Cluster.Spec.Paused }}`: "template: golden:1:11: .Cluster.Spec is not a field: the names of fields are those " +
			"of the API, such as .Cluster.spec",
		`{{ .ControlPlane.Status.Version }}`:                         "such as .ControlPlane.status",
		`{{ .InfraCluster.Metadata }}`:                               "such as .InfraCluster.metadata",
		`{{ .Cluster.Name }}`:                                        "such as .Cluster.metadata.name",
		`{{ .Cluster.ObjectMeta.Name }}`:                             "such as .Cluster.metadata",
		`{{ $.Cluster.Kind }}`:                                       ".Cluster.Kind is not a field",
		`{{ $name := .Cluster.Namespace }}`:                          ".Cluster.Namespace is not a field",
		`{{ (.Cluster).Spec }}`:                                      ".Cluster.Spec is not a field",
		`{{ ((.Cluster).Spec.x).y }}`:                                ".Cluster.Spec is not a field",
		`{{ (dict "a" .Cluster.Spec).a }}`:                           ".Cluster.Spec is not a field",
		`{{ if false }}a{{ else }}{{ .Cluster.Spec }}{{ end }}`:      ".Cluster.Spec is not a field",
		`{{ if .Cluster.Spec }}{{ end }}`:                            ".Cluster.Spec is not a field",
		`{{ range .Cluster.Spec.x }}{{ end }}`:                       ".Cluster.Spec is not a field",
		`{{ range list }}{{ else }}{{ $.Cluster.Spec }}{{ end }}`:    ".Cluster.Spec is not a field",
		`{{ with .Cluster.spec }}{{ $.Cluster.Spec }}{{ end }}`:      ".Cluster.Spec is not a field",
		`{{ 1 | default .Cluster.Spec.x | quote }}`:                  ".Cluster.Spec is not a field",
		`{{ list (dict "a" .Cluster.Spec) }}`:                        ".Cluster.Spec is not a field",
		`{{ define "a" }}{{ .Cluster.Spec }}{{ end }}`:               ".Cluster.Spec is not a field",
		`{{ define "a" }}b{{ end }}{{ template "a" .Cluster.Spec }}`: ".Cluster.Spec is not a field",
		`{{ block "a" .Cluster.Spec }}b{{ end }}`:                    ".Cluster.Spec is not a field",
	} {
		is := rendered(text, data, nil)
		if is.Error == nil || is.Error.Reason != "TemplateInvalid" || !strings.Contains(is.Error.Message, message) {
			t.Errorf("%s: %v", text, is.Error)
		}
	}
	for _, text := range []string{
		`{{ .Cluster.metadata.name }}`, `{{ .Cluster.spec.Kind }}`, `{{ .Missing.Cluster.Spec }}`, `{{ .Cluster.Other }}`,
		`{{ (dict "Cluster" (dict "Name" "a")).Cluster.Name }}`,
		`{{ $x := dict "Cluster" (dict "Name" "a") }}{{ $x.Cluster.Name }}`,
		`{{ with dict "Cluster" (dict "Name" "a") }}{{ .Cluster.Name }}{{ end }}`, `{{/* .Cluster.Spec */}}.Cluster.Spec`,
	} {
		if is := rendered(text, data, nil); is.Error != nil {
			t.Errorf("%s: %v", text, is.Error)
		}
	}
}

func TestLongTextsAndDeepTemplatesAreErrors(t *testing.T) {
	for _, text := range []string{
		`{{ range until 20000 }}{{ repeat 100 "a" }}{{ end }}`,
		`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
	} {
		if is := rendered(text, json.RawMessage(`{}`), nil); is.Error == nil || is.Error.Reason != "TemplateFailed" {
			t.Errorf("%s: %v", text, is)
		}
	}
}

func TestValuesAreReadAsHelmReadsThem(t *testing.T) {
	for text, expected := range map[string]string{
		"a: yes\nb: 0o17\nc: 017\nd: 1e3\ne: ~\n": `{"values":{"a":true,"b":15,"c":15,"d":1000,"e":null}}`,
		"a: &a {b: 1}\nc: *a\n":                   `{"values":{"a":{"b":1},"c":{"b":1}}}`,
		"":                                        `{"values":{}}`,
		"# nothing":                               `{"values":{}}`,
		"null":                                    `{"values":{}}`,
		"1: a\ntrue: b\n":                         `{"values":{"1":"a","true":"b"}}`,
		"a: 2026-01-01\n":                         `{"values":{"a":"2026-01-01"}}`,
		"a: 9007199254740993\nb: 1.10\nc: '1.10'\n": `{"values":{"a":9007199254740992,"b":1.1,"c":"1.10"}}`,
	} {
		encoded, err := json.Marshal(respond(request{Parse: &text}))
		if err != nil || string(encoded) != expected {
			t.Errorf("%q: %s instead of %s", text, encoded, expected)
		}
	}
	for _, text := range []string{"- a", "a", "a: [", "a: b: c", "\t"} {
		if is := respond(request{Parse: &text}); is.Error == nil || is.Error.Reason != "ValuesInvalid" {
			t.Errorf("%q: %v", text, is)
		}
	}
}
