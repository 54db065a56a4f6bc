// Package contract checks that common generators of clients can read the API's OpenAPI document.
package contract
