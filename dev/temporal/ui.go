package temporal

import (
	"context"
	"fmt"
	"net/http"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"

	"kivuko/dev/certificates"
	"kivuko/dev/ports"
)

// UI configures the Web UI.
type UI struct {
	// Port is its loopback port; 0: no Web UI.
	Port int
	// Namespace is the one that it shows first.
	Namespace string
	// CodecEndpoint is the URL of the server that decrypts payloads for the browser;
	// empty: payloads are shown undecoded.
	CodecEndpoint string
	// Origin is the address at which browsers reach it behind a login, whose cookie opens the CodecEndpoint;
	// empty: they reach its own port.
	Origin string
	// Certificate is the name of its certificate in Options.Certificates.
	Certificate string
}

type webUI struct {
	server *uiserver.Server
	port   int
}

func (w *webUI) url() string { return "http://" + ports.Address(w.port) }
func (w *webUI) stop()       { w.server.Stop() }

// startUI serves the Web UI, if configured, and waits until it answers.
func (s *Server) startUI(ctx context.Context) error {
	o := s.opts.UI
	if o.Port == 0 {
		return nil
	}
	// The UI's server ends the process when it can't listen, so we check the port first.
	if !ports.IsFree(o.Port) {
		return fmt.Errorf("port %d of %s, for the Web UI, is taken by another program", o.Port, ports.Loopback)
	}
	var overTLS uiconfig.TLS
	if dir := s.opts.Certificates; dir != "" {
		overTLS.CaFile, _ = certificates.Authorities(dir)
		overTLS.CertFile, overTLS.KeyFile = certificates.Files(dir, o.Certificate)
		overTLS.EnableHostVerification, overTLS.ServerName = true, certificates.Server
	}
	// Loopback has no TLS, and browsers don't send secure cookies without it.
	sharing := uiconfig.CORS{CookieInsecure: true}
	if o.Origin != "" {
		sharing.AllowOrigins = []string{o.Origin}
	}
	server := uiserver.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: s.Address(),
		TLS:                 overTLS,
		Host:                ports.Loopback,
		Port:                o.Port,
		EnableUI:            true,
		DefaultNamespace:    o.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		// Operators command flows by signals, and by the API. These buttons do nothing to a flow or leave a paid order behind.
		WorkflowCancelDisabled: true, WorkflowPauseDisabled: true, WorkflowResetDisabled: true, WorkflowTerminateDisabled: true,
		WorkflowUpdateDisabled: true, ActivityCommandsDisabled: true, BatchActionsDisabled: true, StartWorkflowDisabled: true,
		Codec: uiconfig.Codec{Endpoint: o.CodecEndpoint, IncludeCredentials: o.Origin != ""},
		CORS:  sharing,
	}))
	ui := &webUI{server: server, port: o.Port}
	failed := make(chan error, 1)
	go func() { failed <- server.Start() }()
	s.mu.Lock()
	s.ui = ui
	s.mu.Unlock()
	return waitHTTP(ctx, ui.url()+"/healthz", failed)
}

func waitHTTP(ctx context.Context, url string, failed <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close() // nothing of it is read
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("status %s", resp.Status)
		}
		select {
		case ended := <-failed:
			return fmt.Errorf("the Web UI ended: %w", ended)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", url, err)
		case <-time.After(readyPoll):
		}
	}
}
