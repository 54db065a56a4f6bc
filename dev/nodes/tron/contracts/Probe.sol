// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.20;

// A contract the tests deploy to make the virtual machine misbehave in known
// ways and to read back what it sees of the chain.
contract Probe {
    uint256 public counter;

    receive() external payable {}

    // Writes until the energy is gone.
    function exhaust() external {
        while (true) {
            counter++;
        }
    }

    // Reverts with a reason after touching storage.
    function refuse() external {
        counter = 7;
        revert("refused on purpose");
    }

    // Ends in the INVALID opcode, which takes all energy.
    function invalid() external pure {
        assembly {
            invalid()
        }
    }

    function chain() external view returns (uint256 chainId, address self, uint256 number, uint256 time) {
        return (block.chainid, address(this), block.number, block.timestamp);
    }

    // Moves sun held by the contract, as a contract wallet would.
    function pay(address payable to, uint256 sun) external {
        to.transfer(sun);
    }

    function bump() external payable {
        counter++;
    }

    // Makes a contract of its own.
    function spawn() external returns (address) {
        return address(new Child());
    }
}

contract Child {
    function answer() external pure returns (uint256) {
        return 42;
    }
}
