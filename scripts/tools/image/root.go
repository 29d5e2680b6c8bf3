package main

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user and group of the image, as in the Deployments.
const user = "65532:65532"

// writeRoot writes what programs without libraries need: the certificates that public endpoints are checked with, where Go and
// Rust look for them, and names for the user and the group.
func writeRoot(folder string) error {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		// A file of certificates cannot say up to when certificates of an authority are trusted.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	files := map[string][]byte{
		"etc/ssl/certs/ca-certificates.crt": certificates.Bytes(),
		"etc/passwd":                        []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"),
		"etc/group":                         []byte("root:x:0:\nnonroot:x:65532:\n"),
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
