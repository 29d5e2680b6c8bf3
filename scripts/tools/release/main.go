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
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root, folder, version, image string) error {
	plan, err := readPlan(filepath.Join(root, "config/release.yaml"))
	if err != nil {
		return err
	}
	metadata, err := os.ReadFile(filepath.Join(root, "metadata.yaml"))
	if err != nil {
		return err
	}
	// Everything in one folder, for a release page: nothing of an earlier run stays in it.
	assets := newTarget(folder, "release", version)
	if err := os.RemoveAll(assets.path); err != nil {
		return err
	}
	for _, provider := range plan.Providers {
		if err := writeProvider(root, folder, version, image, plan, provider, metadata, assets); err != nil {
			return fmt.Errorf("%s: %w", provider.Label, err)
		}
	}
	if err := assets.writeSums(); err != nil {
		return err
	}
	fmt.Println("wrote", assets.path)
	return nil
}

func writeProvider(root, folder, version, image string, plan plan, p provider, metadata []byte, assets *target) error {
	objects, err := render(filepath.Join(root, p.Source), image)
	if err != nil {
		return err
	}
	plain, err := toYAML(objects)
	if err != nil {
		return err
	}
	components, err := p.clusterctl(objects)
	if err != nil {
		return err
	}

	// The layout of a local repository of clusterctl.
	local := newTarget(folder, p.Label, version)
	files := map[string][]byte{p.Components: components, "metadata.yaml": metadata}
	modes := map[string]os.FileMode{}
	for _, pattern := range p.Files {
		if err := addFiles(root, pattern, files, modes); err != nil {
			return err
		}
	}
	for name, content := range files {
		for _, target := range []*target{local, assets} {
			if err := target.write(name, content, modes[name]); err != nil {
				return err
			}
		}
	}
	fmt.Println("wrote", local.path)
	if err := assets.write(p.Label+".yaml", plain, 0); err != nil {
		return err
	}

	operator, err := p.operator(plan.Repository, version)
	if err != nil {
		return err
	}
	airGapped, err := p.operatorAirGapped(version, components, metadata)
	if err != nil {
		return err
	}
	if err := assets.write("operator-"+p.Label+".yaml", operator, 0); err != nil {
		return err
	}
	if err := assets.write("operator-"+p.Label+"-air-gapped.yaml", airGapped, 0); err != nil {
		return err
	}

	chart, err := p.helm(objects, plan.Repository, version)
	if err != nil {
		return err
	}
	charts := newTarget(folder, "charts", version)
	if err := os.RemoveAll(filepath.Join(charts.path, p.Chart)); err != nil {
		return err
	}
	for name, content := range chart {
		if err := charts.write(filepath.Join(p.Chart, name), content, 0); err != nil {
			return err
		}
	}
	archive, err := archiveOf(p.Chart, chart)
	if err != nil {
		return err
	}
	return assets.write(fmt.Sprintf("%s-%s.tgz", p.Chart, chartVersion(version)), archive, 0)
}

// addFiles reads the files that match a pattern. A pattern without a match is a mistake.
func addFiles(root, pattern string, files map[string][]byte, modes map[string]os.FileMode) error {
	paths, err := filepath.Glob(filepath.Join(root, pattern))
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
		files[filepath.Base(path)], modes[filepath.Base(path)] = content, info.Mode().Perm()
	}
	return nil
}
