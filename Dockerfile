# The image of all roles: one static binary, the certificates that public endpoints are checked with, and the two programs of
# `capasg addons` (Helm, and the one that renders values), nothing else.
# `docker build --tag <image> .`; for another architecture build on it, or with an emulator (`--platform`).

# Alpine's target is musl, so what comes out needs no libraries.
FROM rust:1.95.0-alpine3.22 AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 cargo build --locked --release --package capasg \
    && cp /target/release/capasg /capasg

# Helm and the program for values, in the versions that addons/go/go.mod pins.
FROM golang:1.26-alpine3.22 AS addons
WORKDIR /src
COPY addons/go .
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o /helm helm.sh/helm/v3/cmd/helm \
    && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o /capasg-values .

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /capasg /capasg
COPY --from=addons /helm /capasg-values /
# The Deployment asks for the same user; here for those who run the image by other means.
USER 65532:65532
ENTRYPOINT ["/capasg"]
CMD ["manager"]
