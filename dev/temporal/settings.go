package temporal

import (
	"fmt"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// openSettings watches the file of dynamic configuration.
//
// Unlike the server's development mode, it does not make every look-up of a search attribute read the cluster's
// record: on an SQL database all columns for search attributes exist from the first start, and the namespace has
// their names.
func openSettings(path string, logger log.Logger, done <-chan any) (dynamicconfig.Client, error) {
	file, err := dynamicconfig.NewFileBasedClient(
		&dynamicconfig.FileBasedClientConfig{Filepath: path, PollInterval: pollSettings}, logger, done)
	if err != nil {
		return nil, fmt.Errorf("dynamic configuration: %w", err)
	}
	return file, nil
}
