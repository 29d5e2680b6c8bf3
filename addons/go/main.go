// Renders values templates and parses values as Helm does: with Go's template engine, sprig, and Helm's YAML library.
//
// Each JSON value on the standard input is a request. Each has an answer, a line on the standard output in the same order.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	// The longest text: the limit of spec.values.
	mostText = 1 << 20
	// The longest message of an error.
	mostMessage = 1000
	// The address space of the process. A template that builds a larger list ends the process, not the pod.
	addressSpace = 2 << 30
)

// The functions that return something else at each call, or for the current time. Their first results are kept.
var kept = []string{
	"ago", "bcrypt", "date", "dateInZone", "date_in_zone", "durationRound", "encryptAES", "genCA", "genCAWithKey",
	"genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htmlDate",
	"htmlDateInZone", "htpasswd", "now", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric",
	"shuffle", "uuidv4",
}

// The functions that would read the environment of the manager or send requests from its pod.
var rejected = []string{"env", "expandenv", "getHostByName"}

// The objects of the data.
var objects = []string{"Cluster", "ControlPlane", "InfraCluster"}

// The fields of objects in Go's types of the API, and what they are in the API itself.
var fields = map[string]string{
	"APIVersion": "apiVersion", "Annotations": "metadata.annotations", "Kind": "kind", "Labels": "metadata.labels",
	"Metadata": "metadata", "Name": "metadata.name", "Namespace": "metadata.namespace", "ObjectMeta": "metadata",
	"Spec": "spec", "Status": "status",
}

type request struct {
	Render *renderRequest `json:"render"`
	Parse  *string        `json:"parse"`
}

type renderRequest struct {
	Name     string                     `json:"name"`
	Template string                     `json:"template"`
	Data     json.RawMessage            `json:"data"`
	Kept     map[string]json.RawMessage `json:"kept"`
}

type answer struct {
	Text   *string                    `json:"text,omitempty"`
	Kept   map[string]json.RawMessage `json:"kept,omitempty"`
	Values *map[string]any            `json:"values,omitempty"`
	Error  *failure                   `json:"error,omitempty"`
}

type failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func main() {
	time.Local = time.UTC
	limit := syscall.Rlimit{Cur: addressSpace, Max: addressSpace}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		fmt.Fprintln(os.Stderr, "cannot limit the address space:", err)
		os.Exit(1)
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(input io.Reader, output io.Writer) error {
	requests := json.NewDecoder(bufio.NewReader(input))
	answers := json.NewEncoder(output)
	answers.SetEscapeHTML(false)
	for {
		var next request
		if err := requests.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.New("a request is not valid JSON")
		}
		if err := answers.Encode(respond(next)); err != nil {
			return err
		}
	}
}

func respond(next request) (is answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			is = failed("RequestFailed", errors.New("a library panicked"))
		}
	}()
	switch {
	case next.Render != nil:
		return render(*next.Render)
	case next.Parse != nil:
		return read(*next.Parse)
	default:
		return failed("RequestInvalid", errors.New("neither render nor parse"))
	}
}

func render(of renderRequest) answer {
	var data any
	// Integers stay int64, as in objects that a Kubernetes client of Go reads.
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(of.Data, &data); err != nil {
		return failed("RequestInvalid", errors.New("the data is not valid JSON"))
	}
	results := keeper{before: of.Kept, after: map[string]json.RawMessage{}, calls: map[string]int{}}
	parsed, err := template.New(of.Name).Funcs(functions(&results)).Parse(of.Template)
	if err == nil {
		err = misspelled(parsed)
	}
	if err != nil {
		return failed("TemplateInvalid", err)
	}
	var text limited
	if err := parsed.Execute(&text, data); err != nil {
		return failed("TemplateFailed", err)
	}
	rendered := text.String()
	return answer{Text: &rendered, Kept: results.after}
}

func read(text string) answer {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return failed("ValuesInvalid", err)
	}
	if values == nil {
		values = map[string]any{}
	}
	return answer{Values: &values}
}

// misspelled returns an error for a field that is named as in Go's types: it would be rendered as `<no value>`.
func misspelled(parsed *template.Template) error {
	all := parsed.Templates()
	// The same template always has the same error.
	slices.SortFunc(all, func(a, b *template.Template) int { return strings.Compare(a.Name(), b.Name()) })
	for _, one := range all {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		if err := misspelledIn(one.Tree, one.Root, true); err != nil {
			return err
		}
	}
	return nil
}

// misspelledIn looks at a node. Where the dot is not the data, only fields of `$` are looked at.
func misspelledIn(tree *parse.Tree, node parse.Node, isData bool) error {
	if path := selected(node, isData); len(path) > 1 && slices.Contains(objects, path[0]) && fields[path[1]] != "" {
		location, _ := tree.ErrorContext(node)
		return fmt.Errorf("template: %s: .%s.%s is not a field: the names of fields are those of the API, such as .%s.%s",
			location, path[0], path[1], path[0], fields[path[1]])
	}
	for _, child := range children(node) {
		if err := misspelledIn(tree, child, isData && !changesDot(node, child)); err != nil {
			return err
		}
	}
	return nil
}

// changesDot returns whether the dot is another value in a part of a node.
func changesDot(node, part parse.Node) bool {
	switch node := node.(type) {
	case *parse.RangeNode:
		return part == parse.Node(node.List)
	case *parse.WithNode:
		return part == parse.Node(node.List)
	}
	return false
}

// selected returns the names that a node selects of the data: `Cluster` and `spec` of `.Cluster.spec` and `$.Cluster.spec`.
func selected(node parse.Node, isData bool) []string {
	switch node := node.(type) {
	case *parse.FieldNode:
		if isData {
			return node.Ident
		}
	case *parse.VariableNode:
		if node.Ident[0] == "$" {
			return node.Ident[1:]
		}
	case *parse.ChainNode:
		// Only fields of an object in parentheses, such as `(.Cluster).spec`: other results may have any fields.
		if before := selected(node.Node, isData); len(before) > 0 {
			return slices.Concat(before, node.Field)
		}
	case *parse.PipeNode:
		if len(node.Cmds) == 1 && len(node.Cmds[0].Args) == 1 {
			return selected(node.Cmds[0].Args[0], isData)
		}
	}
	return nil
}

// children returns the nodes in a node.
func children(node parse.Node) []parse.Node {
	all := []parse.Node{}
	list := func(of *parse.ListNode) {
		if of != nil {
			all = append(all, of)
		}
	}
	pipe := func(of *parse.PipeNode) {
		if of != nil {
			for _, command := range of.Cmds {
				all = append(all, command.Args...)
			}
		}
	}
	branch := func(of parse.BranchNode) {
		pipe(of.Pipe)
		list(of.List)
		list(of.ElseList)
	}
	switch node := node.(type) {
	case *parse.ListNode:
		all = append(all, node.Nodes...)
	case *parse.ActionNode:
		pipe(node.Pipe)
	case *parse.TemplateNode:
		pipe(node.Pipe)
	case *parse.PipeNode:
		pipe(node)
	case *parse.IfNode:
		branch(node.BranchNode)
	case *parse.RangeNode:
		branch(node.BranchNode)
	case *parse.WithNode:
		branch(node.BranchNode)
	case *parse.ChainNode:
		all = append(all, node.Node)
	}
	return all
}

func functions(results *keeper) template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range kept {
		all[name] = results.keep(name, all[name])
	}
	for _, name := range rejected {
		all[name] = func(...any) (string, error) {
			return "", fmt.Errorf("%s is not available in valuesTemplate", name)
		}
	}
	// Sprig returns keys and values in the random order of Go's maps.
	all["keys"] = sortedKeys
	all["values"] = sortedValues
	return all
}

func sortedKeys(maps ...map[string]any) []string {
	all := []string{}
	for _, one := range maps {
		own := make([]string, 0, len(one))
		for key := range one {
			own = append(own, key)
		}
		slices.Sort(own)
		all = append(all, own...)
	}
	return all
}

func sortedValues(of map[string]any) []any {
	all := []any{}
	for _, key := range sortedKeys(of) {
		all = append(all, of[key])
	}
	return all
}

// A keeper returns for a call what an earlier rendering returned for it.
type keeper struct {
	before, after map[string]json.RawMessage
	calls         map[string]int
}

// keep wraps a function. Its calls are identified by name, arguments and their number, so that a change of another part of
// the template does not change them.
func (results *keeper) keep(name string, function any) any {
	original := reflect.ValueOf(function)
	of := original.Type()
	wrapped := func(arguments []reflect.Value) []reflect.Value {
		key := results.key(name, arguments)
		before := results.before[key]
		if value, ok := decoded(before, of.Out(0)); ok {
			results.after[key] = before
			all := []reflect.Value{value}
			for number := 1; number < of.NumOut(); number++ {
				all = append(all, reflect.Zero(of.Out(number)))
			}
			return all
		}
		call := original.Call
		if of.IsVariadic() {
			call = original.CallSlice
		}
		all := call(arguments)
		if last := all[len(all)-1]; len(all) > 1 && !last.IsZero() {
			return all
		}
		// The first result is what later ones are: a time, for example, without the clock's offset.
		if encoded, err := json.Marshal(all[0].Interface()); err == nil {
			if value, ok := decoded(encoded, of.Out(0)); ok {
				results.after[key] = encoded
				all[0] = value
			}
		}
		return all
	}
	return reflect.MakeFunc(of, wrapped).Interface()
}

func (results *keeper) key(name string, arguments []reflect.Value) string {
	hash := sha256.New()
	for _, argument := range arguments {
		if encoded, err := json.Marshal(argument.Interface()); err == nil {
			hash.Write(encoded)
		}
		hash.Write([]byte{0})
	}
	call := fmt.Sprintf("%s.%x", name, hash.Sum(nil)[:8])
	results.calls[call]++
	return fmt.Sprintf("%s.%d", call, results.calls[call])
}

func decoded(encoded json.RawMessage, as reflect.Type) (reflect.Value, bool) {
	value := reflect.New(as)
	if len(encoded) == 0 || json.Unmarshal(encoded, value.Interface()) != nil {
		return reflect.Value{}, false
	}
	return value.Elem(), true
}

// limited ends the execution of a template whose text is too long.
type limited struct{ bytes.Buffer }

func (text *limited) Write(more []byte) (int, error) {
	if text.Len()+len(more) > mostText {
		return 0, fmt.Errorf("the values have more than %d bytes", mostText)
	}
	return text.Buffer.Write(more)
}

func failed(reason string, err error) answer {
	message := strings.Join(strings.Fields(err.Error()), " ")
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage], "") + " …"
	}
	return answer{Error: &failure{Reason: reason, Message: message}}
}
