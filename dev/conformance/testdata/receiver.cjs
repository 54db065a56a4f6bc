// A receiver of webhooks as somebody else would write it: the standard's own library judges each request.
// Arguments: the library's directory. The secret is the first line of the input; the port is printed, and then
// a line of JSON for each request.
const { createServer } = require('node:http')
const { createInterface } = require('node:readline')
const { Webhook } = require(process.argv[2])

createInterface({ input: process.stdin }).once('line', (secret) => {
  const webhook = new Webhook(secret)
  const server = createServer((request, response) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      let refused = ''
      try {
        webhook.verify(body, request.headers)
      } catch (error) {
        refused = String(error.message)
      }
      response.writeHead(refused ? 400 : 204).end()
      console.log(JSON.stringify({ refused, body, headers: request.headers }))
    })
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
})
process.stdin.on('end', () => process.exit(0))
