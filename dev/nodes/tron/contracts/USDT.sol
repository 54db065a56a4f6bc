// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.4.18;

// The tether of Kivuko's TRON development chain. It is written for one reason:
// to behave towards a caller as the USDT contract on TRON's main network does,
// quirks included. What to know before touching it:
//
//   * transfer() succeeds and yet answers a zero word, because the overriding
//     function declares a bool and never sets it.
//   * A fee on transfer exists and is dormant (rate 0). Switched on, a transfer
//     leaves two Transfer logs: what the recipient got, then the owner's fee.
//   * Black-listing stops an address from sending, not from receiving;
//     destroyBlackFunds burns what it holds.
//   * deprecate() forwards every call to a successor contract.
//   * The compiler is of 2017 and ignores the upper 12 bytes of an address
//     word, so calldata with a dirty address word is accepted.
//
// The compiler release, the optimizer being off for readability of energy
// costs, and the layering of the functions are part of the behaviour: they set
// the energy a transfer costs, which a test holds near the main network's.

contract Ownership {
    address public owner;

    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    function Ownership() public {
        owner = msg.sender;
    }

    modifier onlyOwner() {
        require(msg.sender == owner);
        _;
    }

    function transferOwnership(address newOwner) public onlyOwner {
        require(newOwner != address(0));
        OwnershipTransferred(owner, newOwner);
        owner = newOwner;
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

contract Balances {
    uint public totalSupply;
    mapping(address => uint) internal balances;
    mapping(address => mapping(address => uint)) internal allowed;

    event Transfer(address indexed from, address indexed to, uint value);
    event Approval(address indexed owner, address indexed spender, uint value);

    function plus(uint a, uint b) internal pure returns (uint sum) {
        sum = a + b;
        assert(sum >= a);
    }

    function minus(uint a, uint b) internal pure returns (uint) {
        assert(b <= a);
        return a - b;
    }

    function balanceOf(address holder) public view returns (uint) {
        return balances[holder];
    }

    function allowance(address holder, address spender) public view returns (uint) {
        return allowed[holder][spender];
    }

    function transfer(address to, uint value) public returns (bool) {
        require(to != address(0));
        require(value <= balances[msg.sender]);
        balances[msg.sender] = minus(balances[msg.sender], value);
        balances[to] = plus(balances[to], value);
        Transfer(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint value) public returns (bool) {
        allowed[msg.sender][spender] = value;
        Approval(msg.sender, spender, value);
        return true;
    }
}

contract FeeOnTransfer is Balances, Ownership {
    uint public basisPointsRate = 0;
    uint public maximumFee = 0;
    uint internal constant RATE_CEILING = 20;
    uint internal constant FEE_CEILING = 50;
    uint internal constant UNLIMITED = 2**256 - 1;

    string public name;
    string public symbol;
    uint8 public decimals;

    event Params(uint feeBasisPoints, uint maxFee);

    function calcFee(uint value) public view returns (uint) {
        uint fee = mul(value, basisPointsRate) / 10000;
        if (fee > maximumFee) {
            fee = maximumFee;
        }
        return fee;
    }

    // The missing return statement is the point: see the head of this file.
    function transfer(address to, uint value) public returns (bool) {
        uint fee = calcFee(value);
        uint rest = minus(value, fee);
        super.transfer(to, rest);
        if (fee > 0) {
            super.transfer(owner, fee);
        }
    }

    function transferFrom(address from, address to, uint value) public returns (bool) {
        require(to != address(0));
        require(value <= balances[from]);
        require(value <= allowed[from][msg.sender]);
        uint fee = calcFee(value);
        uint rest = minus(value, fee);
        balances[from] = minus(balances[from], value);
        balances[to] = plus(balances[to], rest);
        if (allowed[from][msg.sender] < UNLIMITED) {
            allowed[from][msg.sender] = minus(allowed[from][msg.sender], value);
        }
        Transfer(from, to, rest);
        if (fee > 0) {
            balances[owner] = plus(balances[owner], fee);
            Transfer(from, owner, fee);
        }
        return true;
    }

    function setParams(uint newBasisPoints, uint newMaxFee) public onlyOwner {
        require(newBasisPoints < RATE_CEILING);
        require(newMaxFee < FEE_CEILING);
        basisPointsRate = newBasisPoints;
        maximumFee = mul(newMaxFee, uint(10)**decimals);
        Params(basisPointsRate, maximumFee);
    }

    function mul(uint a, uint b) internal pure returns (uint product) {
        if (a == 0) {
            return 0;
        }
        product = a * b;
        assert(product / a == b);
    }
}

contract BlackList is Ownership {
    mapping(address => bool) public isBlackListed;

    event AddedBlackList(address indexed user);
    event RemovedBlackList(address indexed user);

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
    function transferByLegacy(address from, address to, uint value) public returns (bool);
    function transferFromByLegacy(address sender, address from, address to, uint value) public returns (bool);
    function approveByLegacy(address from, address spender, uint value) public returns (bool);
    function balanceOf(address holder) public view returns (uint);
    function allowance(address holder, address spender) public view returns (uint);
    function totalSupply() public view returns (uint);
}

contract USDT is Halting, FeeOnTransfer, BlackList {
    address public upgradedAddress;
    bool public deprecated;

    event Issue(uint amount);
    event Redeem(uint amount);
    event Deprecate(address newAddress);
    event DestroyedBlackFunds(address indexed blackListedUser, uint balance);

    function USDT(uint supply) public {
        totalSupply = supply;
        name = "Tether USD";
        symbol = "USDT";
        decimals = 6;
        balances[owner] = supply;
        Transfer(address(0), owner, supply);
    }

    function transfer(address to, uint value) public whenNotPaused returns (bool) {
        require(!isBlackListed[msg.sender]);
        if (deprecated) {
            return Successor(upgradedAddress).transferByLegacy(msg.sender, to, value);
        }
        return super.transfer(to, value);
    }

    function transferFrom(address from, address to, uint value) public whenNotPaused returns (bool) {
        require(!isBlackListed[from]);
        if (deprecated) {
            return Successor(upgradedAddress).transferFromByLegacy(msg.sender, from, to, value);
        }
        return super.transferFrom(from, to, value);
    }

    function balanceOf(address holder) public view returns (uint) {
        if (deprecated) {
            return Successor(upgradedAddress).balanceOf(holder);
        }
        return super.balanceOf(holder);
    }

    function approve(address spender, uint value) public whenNotPaused returns (bool) {
        if (deprecated) {
            return Successor(upgradedAddress).approveByLegacy(msg.sender, spender, value);
        }
        return super.approve(spender, value);
    }

    function allowance(address holder, address spender) public view returns (uint) {
        if (deprecated) {
            return Successor(upgradedAddress).allowance(holder, spender);
        }
        return super.allowance(holder, spender);
    }

    function deprecate(address successor) public onlyOwner {
        require(successor != address(0));
        deprecated = true;
        upgradedAddress = successor;
        Deprecate(successor);
    }

    function issue(uint amount) public onlyOwner {
        balances[owner] = plus(balances[owner], amount);
        totalSupply = plus(totalSupply, amount);
        Issue(amount);
        Transfer(address(0), owner, amount);
    }

    function redeem(uint amount) public onlyOwner {
        totalSupply = minus(totalSupply, amount);
        balances[owner] = minus(balances[owner], amount);
        Redeem(amount);
        Transfer(owner, address(0), amount);
    }

    function destroyBlackFunds(address user) public onlyOwner {
        require(isBlackListed[user]);
        uint held = balanceOf(user);
        balances[user] = 0;
        totalSupply = minus(totalSupply, held);
        DestroyedBlackFunds(user, held);
    }
}
