// What a client of the TypeScript SDK does: connects, lists, calls, is asked in the middle of a call, reads, and hears of a
// change. Arguments: the package's folder, http or stdio, the URL, or the command with its arguments. It prints one JSON line.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, transport, ...target] = process.argv.slice(2);
const require = createRequire(folder + '/package.json');
const name = require(folder + '/package.json').name;
const load = (path) => import(pathToFileURL(require.resolve(name + path)).href);
const first = async (...paths) => {
  for (const path of paths) {
    try {
      return await load(path);
    } catch {
      // another version keeps it elsewhere
    }
  }
  throw new Error('not in the package: ' + paths);
};

const main = await first('/client/index.js', '');
const { Client } = main;
const http = main.StreamableHTTPClientTransport ?? (await first('/client/streamableHttp.js', '/streamableHttp')).StreamableHTTPClientTransport;
const stdio = (await first('/client/stdio.js', '/stdio')).StdioClientTransport;

const client = new Client({ name: 'typescript', version: '1' }, { capabilities: { elicitation: {} } });
let asked = 0;
let heard;
const changed = new Promise((resolve) => { heard = resolve; });
const types = await first('/types.js', '');
if (types.ElicitRequestSchema) {
  client.setRequestHandler(types.ElicitRequestSchema, () => { asked++; return { action: 'accept', content: { name: 'Ada' } }; });
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => heard(true));
} else {
  client.setRequestHandler('elicitation/create', () => { asked++; return { action: 'accept', content: { name: 'Ada' } }; });
  client.setNotificationHandler('notifications/tools/list_changed', () => heard(true));
}
await client.connect(transport === 'http' ? new http(new URL(target[0])) : new stdio({ command: target[0], args: target.slice(1) }));
const before = (await client.listTools()).tools.map((tool) => tool.name);
await client.callTool({ name: 'mcp', arguments: { action: 'list', server: 'fault' } });
let patience;
const told = await Promise.race([changed, new Promise((resolve) => { patience = setTimeout(() => resolve(false), 20000); })]);
clearTimeout(patience);
const after = (await client.listTools()).tools.map((tool) => tool.name);
const called = await client.callTool({
  name: 'fault__ask', arguments: { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } } },
});
const read = await client.readResource({ uri: 'fault://one' });
const prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
await client.close();
console.log(JSON.stringify({ before, after, told, asked, called: called.content[0].text, read: read.contents[0].text, prompts }));
