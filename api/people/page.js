"use strict";
// The page of one's own account: it accepts an invitation, sets a new password, logs in, and proves its user by a passkey.
// The access token lives in this page alone and is gone with it. Secrets of links stand behind the #.

const api = "/api/v1";
let token = "";

const at = (id) => document.getElementById(id);
const say = (text) => { at("say").textContent = text; };
const show = (id) => ["invitation", "reset", "login", "account"].forEach((other) => { at(other).hidden = other !== id; });

// Refused is an answer of the service that is no success.
class Refused extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

// What the service says to programs, as people read it here.
const plain = {
  "/credential wrong": "This passkey is not one of your account. Use the device or the security key on which you made it.",
  "/challenge_id not_found": "That took too long. Try again.",
  "/code wrong": "The link was used before or is too old. Ask for another one.",
};

// inWords names the field that is wrong by its label.
function inWords(wrong) {
  const known = plain[wrong.pointer + " " + wrong.code];
  if (known) return known;
  const name = wrong.pointer.replace("/", "");
  const field = [...document.getElementsByName(name)].find((input) => input.offsetParent);
  return (field ? field.parentElement.firstChild.textContent.trim() : name) + " " + wrong.message + ".";
}

async function call(method, path, body) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(api + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit" });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : {};
  if (answer.ok) return value;
  if (answer.status === 401 && token) leave();
  const fields = (value.errors || []).map(inWords).join(" ");
  throw new Refused(answer.status, value.code, fields || value.detail || value.title || "The service did not answer.");
}

function leave() {
  token = "";
  show("login");
}

// run shows what went wrong, and keeps a form from being sent twice.
async function run(form, work) {
  const buttons = form.querySelectorAll("button");
  buttons.forEach((b) => { b.disabled = true; });
  say("");
  try {
    await work();
  } catch (wrong) {
    say(wrong.name === "NotAllowedError" ? "No passkey was given. Use the device or the security key on which you made it." : wrong.message);
  } finally {
    buttons.forEach((b) => { b.disabled = false; });
  }
}

function twice(form, name) {
  if (form.elements[name].value !== form.elements.again.value) throw new Error("The two passwords differ.");
  return form.elements[name].value;
}

async function makePasskey(options) {
  try {
    const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
    return made.toJSON();
  } catch (wrong) {
    if (wrong.name === "InvalidStateError") throw new Error("This device has a passkey of your account already.");
    if (wrong.name === "NotAllowedError") throw new Error("No passkey was made. Try again, and confirm it when your browser asks.");
    throw wrong;
  }
}

async function accept(secret) {
  const invitation = await call("POST", "/users/invitations/open", { token: secret }).catch((wrong) => {
    throw wrong.status === 404 ? new Error("This link was used before, or is too old. Ask who invited you for another one.") : wrong;
  });
  const form = at("invitation");
  at("person").textContent = invitation.first_name + " " + invitation.last_name;
  at("needs-passkey").hidden = !invitation.passkey_required;
  form.elements.passkey_name.parentElement.hidden = !invitation.passkey_required;
  show("invitation");
  form.onsubmit = (event) => {
    event.preventDefault();
    run(form, async () => {
      const body = { token: secret, password: twice(form, "password") };
      if (invitation.passkey_required) {
        const fresh = await call("POST", "/users/invitations/open", { token: secret });
        body.challenge_id = fresh.challenge_id;
        body.credential = await makePasskey(fresh.options);
        body.passkey_name = form.elements.passkey_name.value;
      }
      const account = await call("POST", "/users/invitations/accept", body);
      show("login");
      say(account.is_active ? "Your account is ready. Log in." : "Your account is made. Another person has to let you in before you can log in.");
    });
  };
}

function reset(secret) {
  const [id, code] = secret.split(".");
  show("reset");
  at("reset").onsubmit = (event) => {
    event.preventDefault();
    run(at("reset"), async () => {
      await call("POST", "/users/password/reset", { id, code, new_password: twice(at("reset"), "new_password") });
      show("login");
      say("The password is set, and every session has ended. Log in.");
    });
  };
}

async function prove() {
  const asked = await call("POST", "/auth/step-up/options");
  const given = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked.options) });
  const done = await call("POST", "/auth/step-up", { challenge_id: asked.challenge_id, credential: given.toJSON() });
  say("Proven by your " + done.assurance + " until " + new Date(done.valid_until).toLocaleTimeString() + ".");
}

// proven does what needs a proof that is not old, and asks for the passkey when there is none.
async function proven(work) {
  try {
    return await work();
  } catch (wrong) {
    if (wrong.code !== "step_up_required" || !at("passkeys").children.length) throw wrong;
    await prove();
    return work();
  }
}

const when = (time) => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// browserOf tells a browser and its system by what it sends.
function browserOf(agent) {
  const [, name] = agent.match(/(Edg|OPR|Firefox|Chrome|Safari)\//) || [];
  const [system] = agent.match(/Windows|Android|iPhone|iPad|Mac OS X|Linux/) || [];
  if (!name) return agent || "a program";
  return ({ Edg: "Edge", OPR: "Opera" }[name] || name) + (system ? " on " + system : "");
}

function rows(list, items, row) {
  list.replaceChildren(...items.map((item) => {
    const line = document.createElement("li"), text = document.createElement("span"), more = document.createElement("small"), button = document.createElement("button");
    const [what, details, verb, end] = row(item);
    more.textContent = details;
    text.append(what, more);
    button.textContent = verb;
    button.className = "quiet";
    button.onclick = () => run(line, async () => { await end(); if (token) await refresh(); });
    line.append(text, button);
    return line;
  }));
}

async function refresh() {
  const [keys, sessions] = await Promise.all([call("GET", "/auth/passkeys"), call("GET", "/auth/sessions")]);
  rows(at("passkeys"), keys.passkeys, (k) => [k.name, "added " + when(k.created_at) + (k.used_at ? ", last used " + when(k.used_at) : ""), "Remove",
    () => proven(() => call("DELETE", "/auth/passkeys/" + k.id))]);
  rows(at("sessions"), sessions.sessions, (s) => [browserOf(s.user_agent) + (s.current ? " (here)" : ""), "from " + s.ip + ", last active " + when(s.last_seen_at), "Log out",
    async () => { await call("DELETE", "/auth/sessions/" + s.id); if (s.current) leave(); }]);
  return keys.passkeys.length;
}

function begin() {
  show("login");
  at("login").onsubmit = (event) => {
    event.preventDefault();
    run(at("login"), async () => {
      const known = localStorage.getItem("kivuko-device") || undefined;
      const fields = at("login").elements;
      const tokens = await call("POST", "/users/login", { email: fields.email.value, password: fields.password.value, device_token: known });
      token = tokens.access_token;
      localStorage.setItem("kivuko-device", tokens.device_token);
      fields.password.value = "";
      at("whose").textContent = tokens.user.first_name + " " + tokens.user.last_name;
      show("account");
      if (await refresh()) await prove();
      else say("Your account has no passkey yet. Add one.");
    });
  };
  at("forgot").onclick = () => run(at("login"), async () => {
    if (!at("login").elements.email.reportValidity()) return;
    await call("POST", "/users/password/reset-code", { email: at("login").elements.email.value });
    say("If the address is proven, a link is on its way to it.");
  });
  at("prove").onclick = () => run(at("account"), prove);
  at("add").onclick = () => run(at("account"), async () => {
    const asked = await proven(() => call("POST", "/auth/passkeys/options"));
    const name = "Passkey of " + browserOf(navigator.userAgent);
    await call("POST", "/auth/passkeys", { challenge_id: asked.challenge_id, name, credential: await makePasskey(asked.options) });
    await refresh();
    say("The passkey is added.");
  });
  at("out").onclick = () => run(at("account"), async () => { await call("POST", "/auth/logout"); leave(); });
  at("everywhere").onclick = () => run(at("account"), async () => { await call("POST", "/auth/sessions/revoke-all"); leave(); say("Every session has ended."); });
  at("password").onsubmit = (event) => {
    event.preventDefault();
    run(at("password"), async () => {
      const form = at("password");
      await call("PUT", "/auth/user/me/password", { password: form.elements.password.value, new_password: twice(form, "new_password") });
      form.reset();
      await refresh();
      say("The password is changed, and every other session has ended.");
    });
  };
}

begin();
const secret = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (secret && location.pathname.endsWith("/invitation")) run(at("invitation"), () => accept(secret));
if (secret && location.pathname.endsWith("/reset")) reset(secret);
