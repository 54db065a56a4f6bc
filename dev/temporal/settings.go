package temporal

import (
	"fmt"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// settings is the shared file of dynamic configuration with a few values on top
// that only a local stack wants.
type settings struct {
	*dynamicconfig.FileBasedClient
	local map[dynamicconfig.Key][]dynamicconfig.ConstrainedValue
}

func openSettings(path string, logger log.Logger, done <-chan any) (*settings, error) {
	file, err := dynamicconfig.NewFileBasedClient(
		&dynamicconfig.FileBasedClientConfig{Filepath: path, PollInterval: pollSettings}, logger, done)
	if err != nil {
		return nil, fmt.Errorf("dynamic configuration: %w", err)
	}
	// A new search attribute can be used at once: `make run` and the tests register
	// and use theirs within the same second. The price is a read for each look-up.
	fresh := dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key()
	return &settings{
		FileBasedClient: file,
		local: map[dynamicconfig.Key][]dynamicconfig.ConstrainedValue{
			fresh: {{Value: true}},
		},
	}, nil
}

// GetValue implements dynamicconfig.Client.
func (s *settings) GetValue(key dynamicconfig.Key) []dynamicconfig.ConstrainedValue {
	if v, ok := s.local[key]; ok {
		return v
	}
	return s.FileBasedClient.GetValue(key)
}
