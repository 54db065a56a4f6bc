package temporal

import (
	"fmt"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// openSettings watches the file of dynamic configuration.
//
// The server's own development mode also has every look-up of a search attribute read the cluster's record
// from the database, one after the other. Nobody here needs that: on an SQL database all columns for search
// attributes exist from the first start, and the names that a namespace gives them travel with the namespace.
func openSettings(path string, logger log.Logger, done <-chan any) (dynamicconfig.Client, error) {
	file, err := dynamicconfig.NewFileBasedClient(
		&dynamicconfig.FileBasedClientConfig{Filepath: path, PollInterval: pollSettings}, logger, done)
	if err != nil {
		return nil, fmt.Errorf("dynamic configuration: %w", err)
	}
	return file, nil
}
