// Writes a release of the manifests: what clusterctl and the Cluster API Operator install, Helm charts, and checksums.
//
//	release <root of the tree> <folder> <version> <image>
//
// The same tree gives the same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: release <root of the tree> <folder> <version> <image>")
		os.Exit(2)
	}
	r := release{root: os.Args[1], folder: os.Args[2], version: os.Args[3], image: os.Args[4]}
	if err := r.write(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release that is written.
type release struct {
	root, folder, version, image string

	plan     plan
	metadata []byte
	// Everything that is published, in one folder.
	assets *target
}

func (r *release) write() error {
	var err error
	if r.plan, err = readPlan(filepath.Join(r.root, "config/release.yaml")); err != nil {
		return err
	}
	if r.metadata, err = os.ReadFile(filepath.Join(r.root, "metadata.yaml")); err != nil {
		return err
	}
	r.assets = newTarget(r.folder, "release", r.version)
	// No file of an earlier run is published.
	if err := os.RemoveAll(r.assets.path); err != nil {
		return err
	}
	for _, provider := range r.plan.Providers {
		if err := r.addProvider(provider); err != nil {
			return fmt.Errorf("%s: %w", provider.Label, err)
		}
	}
	if err := r.assets.writeSums(); err != nil {
		return err
	}
	fmt.Println("wrote", r.assets.path)
	return nil
}

func (r *release) addProvider(p provider) error {
	objects, err := render(filepath.Join(r.root, p.Source), r.image)
	if err != nil {
		return err
	}
	plain, err := toYAML(objects)
	if err != nil {
		return err
	}
	if err := r.assets.write(p.Label+".yaml", plain, 0); err != nil {
		return err
	}
	components, err := p.clusterctl(objects)
	if err != nil {
		return err
	}
	if err := r.addRepository(p, components); err != nil {
		return err
	}
	if err := r.addOperator(p, components); err != nil {
		return err
	}
	return r.addChart(p, objects)
}

// addRepository writes the layout of a local repository of clusterctl.
func (r *release) addRepository(p provider, components []byte) error {
	local := newTarget(r.folder, p.Label, r.version)
	both := func(name string, content []byte, mode os.FileMode) error {
		if err := local.write(name, content, mode); err != nil {
			return err
		}
		return r.assets.write(name, content, mode)
	}
	if err := both(p.Components, components, 0); err != nil {
		return err
	}
	if err := both("metadata.yaml", r.metadata, 0); err != nil {
		return err
	}
	for _, pattern := range p.Files {
		paths, err := filepath.Glob(filepath.Join(r.root, pattern))
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return fmt.Errorf("no file matches %s", pattern)
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := both(filepath.Base(path), content, info.Mode().Perm()); err != nil {
				return err
			}
		}
	}
	fmt.Println("wrote", local.path)
	return nil
}

func (r *release) addOperator(p provider, components []byte) error {
	manifest, err := p.operator(r.plan.Repository, r.version)
	if err != nil {
		return err
	}
	if err := r.assets.write("operator-"+p.Label+".yaml", manifest, 0); err != nil {
		return err
	}
	if manifest, err = p.operatorAirGapped(r.version, components, r.metadata); err != nil {
		return err
	}
	return r.assets.write("operator-"+p.Label+"-air-gapped.yaml", manifest, 0)
}

func (r *release) addChart(p provider, objects []object) error {
	files, err := p.helm(objects, r.plan.Repository, r.version)
	if err != nil {
		return err
	}
	chart := newTarget(r.folder, "charts", r.version, p.Chart)
	if err := os.RemoveAll(chart.path); err != nil {
		return err
	}
	for name, content := range files {
		if err := chart.write(name, content, 0); err != nil {
			return err
		}
	}
	archive, err := archiveOf(p.Chart, files)
	if err != nil {
		return err
	}
	return r.assets.write(fmt.Sprintf("%s-%s.tgz", p.Chart, chartVersion(r.version)), archive, 0)
}
