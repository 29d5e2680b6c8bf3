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
		return parse(*next.Parse)
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

func parse(text string) answer {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return failed("ValuesInvalid", err)
	}
	if values == nil {
		values = map[string]any{}
	}
	return answer{Values: &values}
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
