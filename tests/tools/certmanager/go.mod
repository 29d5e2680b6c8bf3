module capasg.dev/tools/certmanager

go 1.26.0

// Nothing is built from this module: clusterctl only needs its custom resource definitions.
require github.com/cert-manager/cert-manager v1.21.1
