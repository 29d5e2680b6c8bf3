package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// One architecture, as Go names it, and the folder with its root.
type root struct {
	architecture string
	folder       string
}

// writeArchive writes an OCI image layout as a tar archive, and answers the digest of its index.
func writeArchive(file, version string, roots []root) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, root := range roots {
		image, err := root.image(version)
		if err != nil {
			return "", fmt.Errorf("%s: %w", root.folder, err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: root.architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	folder, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", err
	}
	// The name by which engines load it.
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := written.AppendIndex(index, name); err != nil {
		return "", err
	}
	found, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return "", err
	}
	if err := validate.Index(found); err != nil {
		return "", err
	}
	content, err := tarOf(folder)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	return digest.String(), os.WriteFile(file, content, 0o644)
}

// image is an image of one layer, configured as the Dockerfile does.
func (r root) image(version string) (v1.Image, error) {
	content, err := tarOf(r.folder)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture = "linux", r.architecture
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/capasg"}, Cmd: []string{"manager"},
		Labels: map[string]string{"org.opencontainers.image.version": version},
	}
	return mutate.ConfigFile(image, config)
}

// tarOf is a folder as a tar archive that does not depend on times and owners, in the order of names.
func tarOf(folder string) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(name), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if entry.IsDir() {
			header.Typeflag, header.Name, header.Mode = tar.TypeDir, header.Name+"/", 0o755
			return archive.WriteHeader(header)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", path)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header.Typeflag, header.Size, header.Mode = tar.TypeReg, int64(len(content)), 0o644
		if info.Mode()&0o100 != 0 {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = archive.Close()
	return buffer.Bytes(), err
}
