// An upstream as people write it with Express: `node express_upstream.js PORT`.
const express = require('express')

const app = express()
app.enable('case sensitive routing')
app.use('/files/private/', (request, response) => response.type('text').send(`PRIVATE-HANDLER ${request.method}\n`))
app.use('/files/', (request, response) => response.type('text').send('files\n'))
app.use(express.json({ type: () => true, limit: '1mb' }))
app.post('/v1/chat/completions', (request, response) => {
  const attacked = JSON.stringify(request.body ?? null).includes('DROP TABLE')
  response.type('text').send(attacked ? 'ATTACK-READ\n' : 'harmless\n')
})
// Bodies that cannot be read.
app.use((error, request, response, next) => response.status(error.status ?? 500).type('text').send('unread\n'))
app.listen(Number(process.argv[2]), '127.0.0.1')
