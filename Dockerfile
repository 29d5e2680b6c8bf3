# The manager's image: one static binary, the certificates that public AWS endpoints are checked with, nothing else.
# `docker build --tag <image> .`; for another architecture build on it, or with an emulator (`--platform`).

# Alpine's target is musl, so what comes out needs no libraries.
FROM rust:1.95.0-alpine3.22 AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 cargo build --locked --release --package capasg \
    && cp /target/release/capasg /capasg

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /capasg /capasg
# The Deployment asks for the same user; here for those who run the image by other means.
USER 65532:65532
ENTRYPOINT ["/capasg"]
CMD ["manager"]
