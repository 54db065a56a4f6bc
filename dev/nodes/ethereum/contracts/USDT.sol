// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.4.18;

// The tether of Kivuko's Ethereum development chain. It is written for one
// reason: to behave towards a caller as the USDT contract on Ethereum's main
// network does, quirks included. What to know before touching it:
//
//   * transfer(), transferFrom() and approve() return nothing at all, and
//     decimals() is a uint256.
//   * A balance that is too low is no revert but an invalid opcode: it burns all
//     the gas that the transaction was given (the assert of a 2017 compiler).
//   * A fee on transfer exists and is dormant (rate 0). Switched on, a transfer
//     leaves two Transfer logs: the owner's fee, then what the recipient got.
//   * Black-listing stops an address from sending, not from receiving;
//     destroyBlackFunds burns what it holds.
//   * issue(), redeem() and destroyBlackFunds() leave no Transfer log, so that
//     the sum of the logs is not the balance.
//   * approve() works while the token is paused and refuses to replace an
//     allowance that is not zero by another.
//   * deprecate() forwards every call to a successor contract.

contract Ownership {
    address public owner;

    function Ownership() public {
        owner = msg.sender;
    }

    modifier onlyOwner() {
        require(msg.sender == owner);
        _;
    }

    function transferOwnership(address newOwner) public onlyOwner {
        if (newOwner != address(0)) {
            owner = newOwner;
        }
    }
}

contract Halting is Ownership {
    bool public paused = false;

    event Pause();
    event Unpause();

    modifier whenNotPaused() {
        require(!paused);
        _;
    }

    function pause() public onlyOwner {
        require(!paused);
        paused = true;
        Pause();
    }

    function unpause() public onlyOwner {
        require(paused);
        paused = false;
        Unpause();
    }
}

contract FeeOnTransfer is Ownership {
    uint public _totalSupply;
    mapping(address => uint) public balances;
    mapping(address => mapping(address => uint)) public allowed;
    uint public basisPointsRate = 0;
    uint public maximumFee = 0;
    uint public decimals;
    uint public constant MAX_UINT = 2**256 - 1;
    uint internal constant RATE_CEILING = 20;
    uint internal constant FEE_CEILING = 50;

    event Transfer(address indexed from, address indexed to, uint value);
    event Approval(address indexed owner, address indexed spender, uint value);
    event Params(uint feeBasisPoints, uint maxFee);

    // The calldata of a transfer with a shortened address would be filled up with zeros.
    modifier fullCalldata(uint words) {
        require(msg.data.length >= 4 + 32 * words);
        _;
    }

    function plus(uint a, uint b) internal pure returns (uint sum) {
        sum = a + b;
        assert(sum >= a);
    }

    function minus(uint a, uint b) internal pure returns (uint) {
        assert(b <= a);
        return a - b;
    }

    function times(uint a, uint b) internal pure returns (uint product) {
        product = a * b;
        assert(a == 0 || product / a == b);
    }

    function move(address from, address to, uint value) internal {
        uint fee = times(value, basisPointsRate) / 10000;
        if (fee > maximumFee) {
            fee = maximumFee;
        }
        uint rest = minus(value, fee);
        balances[from] = minus(balances[from], value);
        balances[to] = plus(balances[to], rest);
        if (fee > 0) {
            balances[owner] = plus(balances[owner], fee);
            Transfer(from, owner, fee);
        }
        Transfer(from, to, rest);
    }

    function setParams(uint newBasisPoints, uint newMaxFee) public onlyOwner {
        require(newBasisPoints < RATE_CEILING);
        require(newMaxFee < FEE_CEILING);
        basisPointsRate = newBasisPoints;
        maximumFee = times(newMaxFee, uint(10)**decimals);
        Params(basisPointsRate, maximumFee);
    }
}

contract BlackList is Ownership {
    mapping(address => bool) public isBlackListed;

    event AddedBlackList(address user);
    event RemovedBlackList(address user);

    function getBlackListStatus(address user) public view returns (bool) {
        return isBlackListed[user];
    }

    function addBlackList(address user) public onlyOwner {
        isBlackListed[user] = true;
        AddedBlackList(user);
    }

    function removeBlackList(address user) public onlyOwner {
        isBlackListed[user] = false;
        RemovedBlackList(user);
    }
}

contract Successor {
    function transferByLegacy(address from, address to, uint value) public;
    function transferFromByLegacy(address sender, address from, address to, uint value) public;
    function approveByLegacy(address from, address spender, uint value) public;
    function balanceOf(address holder) public view returns (uint);
    function allowance(address holder, address spender) public view returns (uint);
    function totalSupply() public view returns (uint);
}

contract USDT is Halting, FeeOnTransfer, BlackList {
    string public name;
    string public symbol;
    address public upgradedAddress;
    bool public deprecated;

    event Issue(uint amount);
    event Redeem(uint amount);
    event Deprecate(address newAddress);
    event DestroyedBlackFunds(address blackListedUser, uint balance);

    function USDT(uint supply) public {
        _totalSupply = supply;
        name = "Tether USD";
        symbol = "USDT";
        decimals = 6;
        balances[owner] = supply;
    }

    function transfer(address to, uint value) public whenNotPaused fullCalldata(2) {
        require(!isBlackListed[msg.sender]);
        if (deprecated) {
            Successor(upgradedAddress).transferByLegacy(msg.sender, to, value);
        } else {
            move(msg.sender, to, value);
        }
    }

    function transferFrom(address from, address to, uint value) public whenNotPaused fullCalldata(3) {
        require(!isBlackListed[from]);
        if (deprecated) {
            Successor(upgradedAddress).transferFromByLegacy(msg.sender, from, to, value);
            return;
        }
        uint allowance_ = allowed[from][msg.sender];
        if (allowance_ < MAX_UINT) {
            allowed[from][msg.sender] = minus(allowance_, value);
        }
        move(from, to, value);
    }

    function approve(address spender, uint value) public fullCalldata(2) {
        if (deprecated) {
            Successor(upgradedAddress).approveByLegacy(msg.sender, spender, value);
            return;
        }
        require(value == 0 || allowed[msg.sender][spender] == 0);
        allowed[msg.sender][spender] = value;
        Approval(msg.sender, spender, value);
    }

    function balanceOf(address holder) public view returns (uint) {
        if (deprecated) {
            return Successor(upgradedAddress).balanceOf(holder);
        }
        return balances[holder];
    }

    function allowance(address holder, address spender) public view returns (uint) {
        if (deprecated) {
            return Successor(upgradedAddress).allowance(holder, spender);
        }
        return allowed[holder][spender];
    }

    function totalSupply() public view returns (uint) {
        if (deprecated) {
            return Successor(upgradedAddress).totalSupply();
        }
        return _totalSupply;
    }

    function deprecate(address successor) public onlyOwner {
        deprecated = true;
        upgradedAddress = successor;
        Deprecate(successor);
    }

    function issue(uint amount) public onlyOwner {
        require(_totalSupply + amount > _totalSupply);
        require(balances[owner] + amount > balances[owner]);
        balances[owner] += amount;
        _totalSupply += amount;
        Issue(amount);
    }

    function redeem(uint amount) public onlyOwner {
        require(_totalSupply >= amount);
        require(balances[owner] >= amount);
        _totalSupply -= amount;
        balances[owner] -= amount;
        Redeem(amount);
    }

    function destroyBlackFunds(address user) public onlyOwner {
        require(isBlackListed[user]);
        uint held = balanceOf(user);
        balances[user] = 0;
        _totalSupply -= held;
        DestroyedBlackFunds(user, held);
    }
}
