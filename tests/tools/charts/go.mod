module capasg.dev/tools/charts

go 1.26.0

require (
	github.com/cilium/cilium v1.20.2
	k8s.io/cloud-provider-aws v1.36.1
)
