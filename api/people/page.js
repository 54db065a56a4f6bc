"use strict";
// The page of one's own account: it accepts an invitation, sets a new password, logs in, and proves its user by a passkey.
// The access token lives in this page alone and is gone with it. Secrets of links stand behind the #.

const api = "/api/v1";
let token = "";

const at = (id) => document.getElementById(id);
const say = (text) => { at("say").textContent = text; };
const show = (id) => ["invitation", "reset", "login", "account"].forEach((other) => { at(other).hidden = other !== id; });

async function call(method, path, body) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(api + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit" });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : {};
  if (answer.ok) return value;
  const fields = (value.errors || []).map((e) => e.pointer.replace("/", "") + " " + e.message).join("; ");
  throw new Error(fields || value.detail || value.title || "The service did not answer.");
}

// run shows what went wrong, and keeps a form from being sent twice.
async function run(form, work) {
  const buttons = form.querySelectorAll("button");
  buttons.forEach((b) => { b.disabled = true; });
  say("");
  try {
    await work();
  } catch (wrong) {
    say(wrong.name === "NotAllowedError" ? "The passkey was not given, or is not known here." : wrong.message);
  } finally {
    buttons.forEach((b) => { b.disabled = false; });
  }
}

function twice(form, name) {
  if (form.elements[name].value !== form.elements.again.value) throw new Error("The two passwords differ.");
  return form.elements[name].value;
}

async function makePasskey(options) {
  const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
  return made.toJSON();
}

async function accept(secret) {
  const invitation = await call("POST", "/users/invitations/open", { token: secret });
  at("person").textContent = invitation.first_name + " " + invitation.last_name;
  at("needs-passkey").hidden = !invitation.passkey_required;
  at("invitation").elements.passkey_name.parentElement.hidden = !invitation.passkey_required;
  show("invitation");
  at("invitation").onsubmit = (event) => {
    event.preventDefault();
    run(at("invitation"), async () => {
      const body = { token: secret, password: twice(at("invitation"), "password") };
      if (invitation.passkey_required) {
        const fresh = await call("POST", "/users/invitations/open", { token: secret });
        body.challenge_id = fresh.challenge_id;
        body.credential = await makePasskey(fresh.options);
        body.passkey_name = at("invitation").elements.passkey_name.value;
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

function rows(list, items, text, end) {
  list.replaceChildren(...items.map((item) => {
    const row = document.createElement("li");
    row.append(text(item), " ");
    const button = document.createElement("button");
    button.textContent = "End";
    button.onclick = () => run(row, async () => { await end(item); await refresh(); });
    row.append(button);
    return row;
  }));
}

async function refresh() {
  const [keys, sessions] = await Promise.all([call("GET", "/auth/passkeys"), call("GET", "/auth/sessions")]);
  rows(at("passkeys"), keys.passkeys, (k) => k.name, (k) => call("DELETE", "/auth/passkeys/" + k.id));
  rows(at("sessions"), sessions.sessions, (s) => s.ip + ", " + s.user_agent + (s.current ? " (this one)" : ""), (s) => call("DELETE", "/auth/sessions/" + s.id));
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
      show("account");
      if (await refresh()) await prove();
    });
  };
  at("forgot").onclick = () => run(at("login"), async () => {
    await call("POST", "/users/password/reset-code", { email: at("login").elements.email.value });
    say("If the address is proven, a link is on its way to it.");
  });
  at("prove").onclick = () => run(at("account"), prove);
  at("add").onclick = () => run(at("account"), async () => {
    const asked = await call("POST", "/auth/passkeys/options");
    await call("POST", "/auth/passkeys", { challenge_id: asked.challenge_id, name: "Passkey of " + new Date().toLocaleDateString(), credential: await makePasskey(asked.options) });
    await refresh();
  });
  at("out").onclick = () => run(at("account"), async () => { await call("POST", "/auth/logout"); token = ""; show("login"); });
}

begin();
const secret = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (secret && location.pathname.endsWith("/invitation")) run(at("invitation"), () => accept(secret));
if (secret && location.pathname.endsWith("/reset")) reset(secret);
