package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A folder that is written, and the checksums of its files.
type target struct {
	path string
	sums map[string][sha256.Size]byte
}

func newTarget(parts ...string) *target {
	return &target{path: filepath.Join(parts...), sums: map[string][sha256.Size]byte{}}
}

// write adds a file; providers of one release share files with the same content only.
func (f *target) write(name string, content []byte, mode os.FileMode) error {
	sum := sha256.Sum256(content)
	if before, ok := f.sums[name]; ok && before != sum {
		return fmt.Errorf("two different files are called %s", name)
	}
	f.sums[name] = sum
	if mode == 0 {
		mode = 0o644
	}
	target := filepath.Join(f.path, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	// Complete or not at all: another process may read the folder.
	partial := target + ".new"
	if err := os.WriteFile(partial, content, mode); err != nil {
		return err
	}
	if err := os.Chmod(partial, mode); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

// writeSums adds SHA256SUMS, which `sha256sum --check` reads.
func (f *target) writeSums() error {
	var text strings.Builder
	for _, name := range sortedKeys(f.sums) {
		fmt.Fprintf(&text, "%x  %s\n", f.sums[name], name)
	}
	return f.write("SHA256SUMS", []byte(text.String()), 0)
}

// archiveOf is a .tgz of files under one folder, without times and owners.
func archiveOf(name string, files map[string][]byte) ([]byte, error) {
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)
	for _, file := range sortedKeys(files) {
		header := &tar.Header{Name: path.Join(name, file), Mode: 0o644, Size: int64(len(files[file])), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[file]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func sortedKeys[V any](entries map[string]V) []string {
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
