package tron

import "net/http"

func (n *Node) httpHandler() http.Handler    { return http.NotFoundHandler() }
func (n *Node) controlHandler() http.Handler { return http.NotFoundHandler() }
