"use strict";
// The second step of the login: a passkey signs the API's challenge. Only the API can tell whether the signature is right.

// What the API says to programs, as people read it here.
const plain = {
  "/credential": "This passkey is not one of your account. Use the device or the security key on which you made it.",
  "/challenge_id": "That took too long. Try again.",
};

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: body ? { "Content-Type": "application/json" } : {}, body: body && JSON.stringify(body) });
  const text = await answer.text();
  const value = text.startsWith("{") ? JSON.parse(text) : {};
  if (answer.ok) return value;
  throw new Error((value.errors || []).map((e) => plain[e.pointer] || e.message).join(" ") || value.detail || text || "The service did not answer.");
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
    say.textContent = wrong.name === "NotAllowedError" ? "No passkey was given. Use the device or the security key on which you made it." : wrong.message;
    button.disabled = false;
  }
};
