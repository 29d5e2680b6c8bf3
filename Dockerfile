# The image of all roles: one static binary, the two programs of `capasg addons` (Helm, and the one that renders values), the
# certificates that public endpoints are checked with, and names for the user. Nothing else: no shell, no libraries.
# `docker build --tag <image> .`; for another architecture build on it, or with an emulator (`--platform`). `make image`
# assembles the same files without a container engine.

# Pinned by digest with `--build-arg RUST_IMAGE=<name>:<tag>@sha256:<digest>`, as the release workflow does.
ARG RUST_IMAGE=rust:1.95.0-alpine3.22
ARG GO_IMAGE=golang:1.26-alpine3.22

# Alpine's target is musl, so what comes out needs no libraries.
FROM ${RUST_IMAGE} AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 cargo build --locked --release --package capasg \
    && cp /target/release/capasg /capasg

# Helm and the program for values, in the versions that addons/go/go.mod pins; certificates in the version that
# scripts/tools/image/go.mod pins.
FROM ${GO_IMAGE} AS root
ENV CGO_ENABLED=0
WORKDIR /src/addons
COPY addons/go .
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -ldflags "-s -w" -o /image/helm helm.sh/helm/v3/cmd/helm \
    && go build -trimpath -buildvcs=false -ldflags "-s -w" -o /image/capasg-values .
WORKDIR /src/image
COPY scripts/tools/image .
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    go run . root /image

FROM scratch
COPY --from=root /image/ /
COPY --from=build /capasg /capasg
# The Deployment asks for the same user; here for those who run the image by other means.
USER 65532:65532
ENTRYPOINT ["/capasg"]
CMD ["manager"]
