// Package docker checks the files of docker/ as far as that is possible without a container engine: the Dockerfile
// with the linter of its builder, the compose file against its schema and against our own rules, and the image's
// files by running the binary with them as its root. It is a module of its own, because the builder's libraries
// would choose other versions for the local stack.
package docker
