# ctxbench alone: one static program, no shell, not root. Mount sessions and a folder for results:
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" ctxbench run sessions --out out
FROM rust:1.95-alpine AS build
# Alpine keeps one version of a package only, so one that is named here would be gone one day.
# hadolint ignore=DL3018
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked --bin ctxbench \
    && install -D -t /out target/dist/ctxbench THIRD-PARTY-NOTICES.md LICENSE-MIT LICENSE-APACHE

FROM scratch
COPY --from=build /out/ctxbench /usr/bin/ctxbench
COPY --from=build /out/*.md /out/LICENSE-* /usr/share/doc/ctxbench/
# Results are put together in a temporary folder beside their place; other commands need one of their own.
ENV TMPDIR=/work
WORKDIR /work
USER 65534:65534
ENTRYPOINT ["/usr/bin/ctxbench"]
