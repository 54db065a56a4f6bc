// Drives litesvm, which is Agave's virtual machine, for the tests: one JSON request
// a line, one JSON answer a line. The argument is the library to drive.
'use strict';
const lib = require(process.argv[2]);
const svm = new lib.LiteSvm();
svm.setTransactionHistory(1000000n);

// The library numbers the kinds of errors in the order of their declaration.
const transactionKinds = `
  AccountInUse AccountLoadedTwice AccountNotFound ProgramAccountNotFound InsufficientFundsForFee
  InvalidAccountForFee AlreadyProcessed BlockhashNotFound CallChainTooDeep MissingSignatureForFee
  InvalidAccountIndex SignatureFailure InvalidProgramForExecution SanitizeFailure ClusterMaintenance
  AccountBorrowOutstanding WouldExceedMaxBlockCostLimit UnsupportedVersion InvalidWritableAccount
  WouldExceedMaxAccountCostLimit WouldExceedAccountDataBlockLimit TooManyAccountLocks
  AddressLookupTableNotFound InvalidAddressLookupTableOwner InvalidAddressLookupTableData
  InvalidAddressLookupTableIndex InvalidRentPayingAccount WouldExceedMaxVoteCostLimit
  WouldExceedAccountDataTotalLimit MaxLoadedAccountsDataSizeExceeded ResanitizationNeeded
  InvalidLoadedAccountsDataSizeLimit UnbalancedTransaction ProgramCacheHitMaxLimit CommitCancelled
`.trim().split(/\s+/);
const instructionKinds = `
  GenericError InvalidArgument InvalidInstructionData InvalidAccountData AccountDataTooSmall
  InsufficientFunds IncorrectProgramId MissingRequiredSignature AccountAlreadyInitialized
  UninitializedAccount UnbalancedInstruction ModifiedProgramId ExternalAccountLamportSpend
  ExternalAccountDataModified ReadonlyLamportChange ReadonlyDataModified DuplicateAccountIndex
  ExecutableModified RentEpochModified NotEnoughAccountKeys AccountDataSizeChanged AccountNotExecutable
  AccountBorrowFailed AccountBorrowOutstanding DuplicateAccountOutOfSync InvalidError ExecutableDataModified
  ExecutableLamportChange ExecutableAccountNotRentExempt UnsupportedProgramId CallDepth MissingAccount
  ReentrancyNotAllowed MaxSeedLengthExceeded InvalidSeeds InvalidRealloc ComputationalBudgetExceeded
  PrivilegeEscalation ProgramEnvironmentSetupFailure ProgramFailedToComplete ProgramFailedToCompile
  Immutable IncorrectAuthority AccountNotRentExempt InvalidAccountOwner ArithmeticOverflow UnsupportedSysvar
  IllegalOwner MaxAccountsDataAllocationsExceeded MaxAccountsExceeded MaxInstructionTraceLengthExceeded
  BuiltinProgramsMustConsumeComputeUnits BorshIoError
`.trim().split(/\s+/);
const hex = text => Buffer.from(text, 'hex');
const base64 = bytes => Buffer.from(bytes).toString('base64');

function instructionError(e) {
  if (typeof e === 'number') return instructionKinds[e];
  return e.code === undefined ? 'BorshIoError' : {Custom: e.code};
}

function transactionError(e) {
  if (typeof e === 'number') return transactionKinds[e];
  switch (e.constructor.name) {
    case 'TransactionErrorInstructionError': return {InstructionError: [e.index, instructionError(e.err())]};
    case 'TransactionErrorInsufficientFundsForRent': return {InsufficientFundsForRent: {account_index: e.accountIndex}};
    case 'TransactionErrorDuplicateInstruction': return {DuplicateInstruction: e.index};
    default: return e.constructor.name;
  }
}

function metadata(m) {
  const returned = m.returnData();
  return {
    logs: m.logs(),
    units: Number(m.computeUnitsConsumed()),
    inner: m.innerInstructions().map(list => list.map(i => ({
      program: i.instruction().programIdIndex(),
      accounts: Array.from(i.instruction().accounts()),
      data: base64(i.instruction().data()),
      height: i.stackHeight(),
    }))),
    returned: base64(returned.data()),
  };
}

function account(key) {
  const a = svm.getAccount(hex(key));
  if (!a || a.lamports() === 0n) return null;
  return {
    lamports: String(a.lamports()), owner: Buffer.from(a.owner()).toString('hex'),
    data: base64(a.data()), executable: a.executable(),
  };
}

const handlers = {
  next(q) {
    svm.expireBlockhash();
    const clock = svm.getClock();
    clock.slot = BigInt(q.slot);
    clock.unixTimestamp = BigInt(q.time);
    clock.epochStartTimestamp = BigInt(q.epochStart);
    clock.epoch = BigInt(q.epoch);
    clock.leaderScheduleEpoch = BigInt(q.epoch) + 1n;
    svm.setClock(clock);
    return {blockhash: svm.latestBlockhash()};
  },
  slots(q) {
    svm.setSlotHashes(q.slots.map(s => { // the class has no constructor
      const [one] = svm.getSlotHashes();
      [one.slot, one.hash] = [BigInt(s.slot), s.hash];
      return one;
    }));
    return {};
  },
  set(q) {
    svm.setAccount(hex(q.key), new lib.Account(BigInt(q.lamports), Buffer.from(q.data, 'base64'), hex(q.owner), false, 18446744073709551615n));
    return {};
  },
  program(q) {
    svm.addProgramWithLoader(hex(q.key), Buffer.from(q.code, 'base64'), hex(q.loader));
    return {};
  },
  get(q) { return {accounts: q.keys.map(account)}; },
  send(q) {
    const wire = Buffer.from(q.wire, 'base64');
    const versioned = (wire[1 + 64 * wire[0]] & 0x80) !== 0;
    const r = versioned ? svm.sendVersionedTransaction(wire) : svm.sendLegacyTransaction(wire);
    if (r instanceof lib.FailedTransactionMetadata) return {err: transactionError(r.err()), ...metadata(r.meta())};
    return {err: null, ...metadata(r)};
  },
};

require('readline').createInterface({input: process.stdin}).on('line', line => {
  let answer;
  try {
    const q = JSON.parse(line);
    answer = handlers[q.op](q);
  } catch (e) {
    answer = {fault: String(e && e.message || e)};
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
});
