package worker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
)

// ClientConfig configures the connection to Temporal. Empty fields come from the variables and files that the temporal
// command line reads, so that certificates are configured once for both.
type ClientConfig struct {
	Address   string
	Namespace string
	TLS       *tls.Config // nil: no TLS, unless the variables ask for it
	// The certificate and its private key (PEM) that show Temporal which process this is; empty: none of our own.
	Certificate, PrivateKey string
	APIKey                  string
	Keys                    []Key // of payloads; the first encrypts
	Identity                string
	Logger                  *slog.Logger
	Metrics                 prometheus.Registerer // nil: no metrics of the SDK
	Dial                    []grpc.DialOption     // further options of the connection
}

// DialLazy returns a client with payload encryption, which connects to Temporal at its first use: a process may start before
// Temporal does. Failures are encrypted too, because a message or a stack trace can contain payload data.
func DialLazy(c ClientConfig) (client.Client, error) {
	options, err := clientOptions(c)
	if err != nil {
		return nil, err
	}
	return client.NewLazyClient(options)
}

func clientOptions(c ClientConfig) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("temporal client configuration: %w", err)
	}
	if c.Address != "" {
		options.HostPort = c.Address
	}
	if c.Namespace != "" {
		options.Namespace = c.Namespace
	}
	if c.TLS != nil && options.ConnectionOptions.TLS == nil {
		options.ConnectionOptions.TLS = c.TLS
	}
	if c.Certificate != "" {
		own, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey))
		if err != nil {
			return options, errors.New("temporal client configuration: the certificate and its private key don't fit") // the error could quote a key
		}
		options.ConnectionOptions.TLS = withCertificate(options.ConnectionOptions.TLS, own)
	}
	if c.APIKey != "" {
		options.Credentials = client.NewAPIKeyStaticCredentials(c.APIKey)
	}
	codec, err := NewCodec(c.Keys)
	if err != nil {
		return options, err
	}
	options.Identity = c.Identity
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, c.Dial...)
	options.DataConverter = DataConverter(codec)
	options.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: options.DataConverter, EncodeCommonAttributes: true,
	})
	if c.Logger != nil {
		options.Logger = log.NewStructuredLogger(c.Logger)
	}
	if c.Metrics != nil {
		if options.MetricsHandler, err = metricsHandler(c.Metrics, c.Logger); err != nil {
			return options, err
		}
	}
	return options, nil
}

// withCertificate adds a certificate to the settings of a connection, which is then one over TLS.
func withCertificate(c *tls.Config, own tls.Certificate) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c = c.Clone()
	c.Certificates = []tls.Certificate{own}
	return c
}

// metricsHandler exports the SDK's metrics to a Prometheus registry.
func metricsHandler(r prometheus.Registerer, logger *slog.Logger) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(r), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("temporal metrics: %w", err)
	}
	meter := metric.NewMeterProvider(metric.WithReader(exporter)).Meter("temporal")
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: meter, UseMonotonicCounters: true,
		OnError: func(err error) { // a metric that can't be counted must not end a process that moves money
			if logger != nil {
				logger.Warn("a metric of Temporal's SDK was refused", "error", err)
			}
		},
	}), nil
}
