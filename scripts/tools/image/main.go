// Writes what the image has beside its programs, and images without a container engine.
//
//	image root <folder>                                       certificates, users and groups
//	image archive <file> <version> <architecture>=<root>...   an OCI archive of root folders, for one or more architectures
//
// The same roots give the same bytes.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "root":
		return writeRoot(args[1])
	case len(args) >= 4 && args[0] == "archive":
		var roots []root
		for _, arg := range args[3:] {
			architecture, folder, ok := strings.Cut(arg, "=")
			if !ok {
				return fmt.Errorf("%s is not <architecture>=<root>", arg)
			}
			roots = append(roots, root{architecture, folder})
		}
		digest, err := writeArchive(args[1], args[2], roots)
		if err != nil {
			return err
		}
		fmt.Println(digest)
		return nil
	default:
		return fmt.Errorf("usage: image root <folder> | image archive <file> <version> <architecture>=<root>...")
	}
}
