import { exportLine } from './main-module';
import { COMPATIBILITY_DATE, OBJECT_CLASSES } from './toolchain';
import { type ConfigFormat, snippet } from './wrangler-config';

/** The module with the handlers, for a new project and for an existing Worker, in TypeScript or JavaScript. */
export function deploymentModule(typescript: boolean): string {
  const types = typescript
    ? `/** Arguments of each job type: what \`enqueue\` takes and \`job.args\` has. */
interface Jobs {
  'greeting.write': [name: string];
}

`
    : '';
  return `import { createTocsin, defineHandlers } from 'tocsin/queue';

${types}/** One function for each job type. Its return value is the result of the job. When it throws, the job is retried. */
export const handlers = defineHandlers${typescript ? '<Jobs>' : ''}({
  'greeting.write': (job) => {
    const [name] = job.args;
    if (name === '') throw Object.assign(new Error('The name is empty.'), { name: 'EmptyNameError' });
    return { text: \`Hello, \${name}!\` };
  },
});

export const tocsin = createTocsin({ handlers });
`;
}

export function mainModule(deployment: string): string {
  return `import { tocsin } from '${deployment}';

${exportLine()}

// Requests below /ojs/ go to the queue, all others come here.
export default tocsin.worker({
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === 'POST' && pathname === '/greetings') {
      const job = await tocsin.enqueue('greeting.write', [searchParams.get('name') ?? 'World']);
      return Response.json({ id: job.id }, { status: 202 });
    }
    return new Response('POST /greetings?name=Ada enqueues a job. The queue answers below /ojs/v1.\\n');
  },
});
`;
}

/** A new Worker's sockets are those of its workers and producers. */
const PLAIN_SOCKETS = 'no_web_socket_compression';
const WHY_PLAIN = "The queue's messages are small and frequent: compressing them costs more than it saves.";

const WHY_MINIFIED = 'Loads faster at each start. The uploaded source map keeps stack traces readable.';

export function wranglerConfig(format: ConfigFormat, name: string): string {
  if (format === 'toml') {
    return `name = ${JSON.stringify(name)}
main = "src/index.ts"
compatibility_date = "${COMPATIBILITY_DATE}"
# ${WHY_PLAIN}
compatibility_flags = ["${PLAIN_SOCKETS}"]
# ${WHY_MINIFIED}
minify = true
upload_source_maps = true

# The queue's objects. They need no bindings.
${snippet('toml')}`;
  }
  const classes = OBJECT_CLASSES.map((one) => JSON.stringify(one)).join(', ');
  return `{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": ${JSON.stringify(name)},
  "main": "src/index.ts",
  "compatibility_date": "${COMPATIBILITY_DATE}",
  // ${WHY_PLAIN}
  "compatibility_flags": ["${PLAIN_SOCKETS}"],
  // ${WHY_MINIFIED}
  "minify": true,
  "upload_source_maps": true,
  // The queue's objects. They need no bindings.
  "migrations": [
    { "tag": "v1", "new_sqlite_classes": [${classes}] }
  ]
}
`;
}

export const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2023",
    "lib": ["ES2024"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "types": ["@cloudflare/workers-types/experimental", "@cloudflare/vitest-pool-workers/types"],
    "strict": true,
    "isolatedModules": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true,
    "noEmit": true
  },
  "include": ["src", "test"]
}
`;

export const DEV_VARS = `# Read by wrangler dev, never deployed: on your own machine, requests to localhost need no key.
ALLOW_LOCALHOST=true
`;

export const GITIGNORE = `node_modules
.wrangler/
.dev.vars
`;

export function vitestConfig(configFile: string): string {
  return `import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { defineConfig } from 'vitest/config';

// Cloudflare renamed its plugin to @cloudflare/vitest-plugin. package.json installs that under the former name, which
// most projects import. The version is exact because the plugin contains a runtime: that of the wrangler beside it.
export default defineConfig({
  plugins: [cloudflareTest({ wrangler: { configPath: './${configFile}' } })],
});
`;
}

export const TEST_TYPES = `// Which module is the Worker: \`exports.default\` is what it exports.
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import('../src/index');
  }
}
`;

export function greetingTest(deployment: string): string {
  return `import { exports } from 'cloudflare:workers';
import type { JobsOf } from 'tocsin/queue';
import { testQueue } from 'tocsin/testing/vitest';
import { expect, it } from 'vitest';
import type { handlers } from '${deployment}';

// The queue of this Worker. Its clock moves only when a test says so.
const queue = testQueue<JobsOf<typeof handlers>>();

it('writes a greeting with the given name', async () => {
  const answer = await exports.default.fetch('http://localhost/greetings?name=Ada', { method: 'POST' });
  const { id } = (await answer.json()) as { id: string };
  await queue.idle();
  expect(await queue.job(id)).toMatchObject({ state: 'completed', result: { text: 'Hello, Ada!' } });
});

it('writes a delayed greeting after the delay', async () => {
  await queue.enqueue('greeting.write', ['Ada'], { delay: '1h' });
  await queue.advance('59m');
  await expect(queue).not.toHaveCompleted('greeting.write');
  await queue.advance('1m');
  await expect(queue).toHaveCompleted('greeting.write', ['Ada']);
});

it('does not retry an error that the policy calls non-retryable', async () => {
  const { id } = await queue.enqueue('greeting.write', [''], { retry: { nonRetryableErrors: ['EmptyNameError'] } });
  await queue.idle();
  expect(await queue.job(id)).toMatchObject({ state: 'discarded', attempt: 1, error: { type: 'EmptyNameError' } });
});
`;
}
