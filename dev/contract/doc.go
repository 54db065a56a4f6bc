// Package contract checks that the generators which users of the API reach for can read its document.
package contract
