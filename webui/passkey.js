"use strict";
// The second step of the login: a passkey signs the API's challenge. Only the API can tell whether the signature is right.

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: body ? { "Content-Type": "application/json" } : {}, body: body && JSON.stringify(body) });
  const text = await answer.text();
  const value = text.startsWith("{") ? JSON.parse(text) : {};
  if (answer.ok) return value;
  throw new Error((value.errors || []).map((e) => e.message).join("; ") || value.detail || text || "The service did not answer.");
}

const button = document.getElementById("prove");
button.onclick = async () => {
  const say = document.getElementById("say");
  button.disabled = true;
  say.textContent = "";
  try {
    const asked = await post("/login/options");
    const given = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked.options) });
    await post("/login/passkey", { challenge_id: asked.challenge_id, credential: given.toJSON() });
    location.replace("/");
  } catch (wrong) {
    say.textContent = wrong.name === "NotAllowedError" ? "The passkey was not given, or is not known here." : wrong.message;
    button.disabled = false;
  }
};
