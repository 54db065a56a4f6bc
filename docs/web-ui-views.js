// Saved views and columns of the Temporal Web UI (2.54) for Kivuko's operators. The Web UI keeps both in the browser, so
// each operator runs this once: open the Web UI, open the browser's console (F12), paste this file, press Enter, reload.
// It replaces the views of the same names and leaves the others.
(() => {
  const namespace = "kivuko";
  const views = [
    ["Needs an operator", "KivukoNeedsAttention = true"],
    ["Parked: a customer's payment", "KivukoNeedsAttention = true AND KivukoParkedReason IN ('prompt-refused', 'outcome-unknown', 'receipt-missing', 'one-source', 'sources-disagree', 'late-money', 'flow-gone')"],
    ["Parked: a payout or refund", "KivukoNeedsAttention = true AND (KivukoParkedReason STARTS_WITH 'momo-' OR KivukoParkedReason STARTS_WITH 'bank-' OR KivukoParkedReason STARTS_WITH 'bank_refund-' OR KivukoParkedReason STARTS_WITH 'refund-')"],
    ["Parked: crypto can't be sent", "KivukoNeedsAttention = true AND (KivukoParkedReason STARTS_WITH 'payout-' OR KivukoParkedReason IN ('screening-unknown', 'transfer-blocked', 'cold-wallet', 'sweep-officers'))"],
    ["Parked: a swap", "KivukoNeedsAttention = true AND KivukoParkedReason STARTS_WITH 'swap-'"],
    ["Parked: a wallet of several owners", "KivukoNeedsAttention = true AND (KivukoParkedReason STARTS_WITH 'multisig-' OR KivukoParkedReason STARTS_WITH 'proposal-')"],
    ["Parked: a merchant's withdrawal", "KivukoNeedsAttention = true AND KivukoParkedReason STARTS_WITH 'withdrawal-'"],
    ["Parked: a deposit", "KivukoNeedsAttention = true AND KivukoParkedReason STARTS_WITH 'deposit'"],
    ["Parked: a step failed", "KivukoNeedsAttention = true AND KivukoParkedReason = 'step-failed'"],
    ["Waits for an officer", "ExecutionStatus = 'Running' AND KivukoWaitingFor = 'officer'"],
    ["Waits for a bank", "ExecutionStatus = 'Running' AND KivukoWaitingFor = 'bank'"],
    ["Waits for mobile money", "ExecutionStatus = 'Running' AND KivukoWaitingFor = 'momo'"],
    ["Open purchases", "ExecutionStatus = 'Running' AND WorkflowType = 'OnRamp'"],
    ["Open sales", "ExecutionStatus = 'Running' AND WorkflowType = 'OffRamp'"],
    ["Open deposits at the OTC desk", "ExecutionStatus = 'Running' AND WorkflowType = 'OTCDeposit'"],
    ["Open swaps", "ExecutionStatus = 'Running' AND WorkflowType = 'Swap'"],
    ["Open proposals", "ExecutionStatus = 'Running' AND WorkflowType = 'MultisigProposal'"],
    ["Open withdrawals at the OTC desk", "ExecutionStatus = 'Running' AND WorkflowType = 'OTCWithdrawal'"],
    ["Open transfers", "ExecutionStatus = 'Running' AND WorkflowType = 'Transfer'"],
    ["Failed, which no flow should be", "ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')"],
  ];
  const columns = ["Status", "Type", "Workflow ID", "KivukoStage", "KivukoWaitingFor", "KivukoParkedReason", "KivukoNetwork", "KivukoAsset", "Start"];

  const change = (key, put) => {
    const all = JSON.parse(localStorage.getItem(key) ?? "{}");
    all[namespace] = put(all[namespace] ?? []);
    localStorage.setItem(key, JSON.stringify(all));
  };
  const names = new Set(views.map(([name]) => name));
  change("saved-workflow-queries", (old) => [
    ...views.map(([name, query]) => ({ id: crypto.randomUUID(), name, query, type: "user" })),
    ...old.filter((view) => !names.has(view.name)),
  ]);
  change("namespace-workflow-table-columns", () => columns.map((label) => ({ label })));
})();
