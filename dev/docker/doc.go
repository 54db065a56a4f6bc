// Package docker checks the files of docker/ as far as possible without a container engine: the Dockerfile with the
// linter of its builder, the compose file against its schema and our own rules, and the image's files by running the
// binary with them as its root. It is a separate module, because the builder's libraries would change versions in the
// local stack.
package docker
