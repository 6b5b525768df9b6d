// What `init` does to the texts of a project: it adds, and everything else stays as its author wrote it.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { load } from './cli.mjs';

const { partsOf, readConfig, needsOf, nextTag, withQueue, snippet } = await load('project/wrangler-config.ts');
const { builtBy } = await load('project/frameworks.ts');
const { planInit } = await load('project/plan.ts');
const { adaptModule, importOf } = await load('project/main-module.ts');
const { extendPackage, packageName } = await load('project/package-json.ts');
const { DEV_DEPENDENCIES, INSTALL_SCRIPTS, QUEUE_EXPORTS, OBJECT_CLASSES, COMPATIBILITY_DATE } =
  await load('project/toolchain.ts');
const { originFor } = await load('project/origin.ts');
const { dateOf } = await load('project/wrangler.ts');
const { wranglerConfig } = await load('project/templates.ts');

const CLASSES = '["QueueObject", "DirectoryObject", "UniqueLockObject", "WorkflowObject"]';

/** The configuration with the queue; it must need nothing then. */
function extended(file, text) {
  const config = readConfig(file, text);
  const result = withQueue(config, needsOf(config));
  if (result !== undefined) assert.deepEqual(needsOf(readConfig(file, result)), COMPLETE);
  return result;
}
const COMPLETE = { classes: [], withoutSqlite: [], flags: [] };

describe('where the package comes from', () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'tocsin-origin-')));
  after(() => rmSync(base, { recursive: true, force: true }));
  const host = join(base, 'host');
  const bin = join(host, 'node_modules/.bin/tocsin');
  const checkout = join(base, 'checkout');
  const installed = (spec, section = 'dependencies') => {
    mkdirSync(host, { recursive: true });
    writeFileSync(join(host, 'package.json'), JSON.stringify({ [section]: { tocsin: spec } }));
    return originFor(join(host, 'apps/shop'), [bin]);
  };

  it('is a file beside the project that has it: the new folder names it as seen from there', () => {
    for (const spec of ['file:../tocsin-1.0.0.tgz', '../tocsin-1.0.0.tgz', `file:${base}/tocsin-1.0.0.tgz`]) {
      assert.equal(installed(spec), 'file:../../../tocsin-1.0.0.tgz');
    }
    assert.equal(installed('file:tocsin.tgz', 'devDependencies'), 'file:../../tocsin.tgz');
    assert.equal(installed('link:../checkout'), 'file:../../../checkout');
  });

  it('is an address, which is the same from everywhere', () => {
    for (const spec of [
      'https://a.example/tocsin.tgz',
      'git+https://a.example/t.git#v1',
      'github:a/tocsin',
      'a/tocsin',
    ])
      assert.equal(installed(spec), spec);
  });

  it('is a registry, where the version of the program is enough', () => {
    for (const spec of ['^1.0.0', '1.0.0', 'latest', '>=1 <3', 'npm:tocsin@1'])
      assert.equal(installed(spec), undefined);
  });

  it('is a checkout that do not exist installed, unless it is another package', () => {
    mkdirSync(join(checkout, 'dist/cli'), { recursive: true });
    const program = join(checkout, 'dist/cli/index.js');
    writeFileSync(join(checkout, 'package.json'), '{"name":"tocsin"}');
    assert.equal(originFor(join(base, 'shop'), ['', program]), 'file:../checkout');
    writeFileSync(join(checkout, 'package.json'), '{"name":"create-tocsin"}');
    assert.equal(originFor(join(base, 'shop'), ['', program]), undefined);
    writeFileSync(join(checkout, 'package.json'), '{"name"');
    assert.equal(originFor(join(base, 'shop'), ['', program]), undefined);
  });
});

describe('wrangler.toml', () => {
  it('gets a migration after those that it has, and keeps its comments', () => {
    const text =
      '# my worker\nname = "a" # name\ncompatibility_date = "2026-04-01"\n\n[[migrations]]\ntag = "v1"\nnew_classes = ["Old"]\n';
    assert.equal(
      extended('wrangler.toml', text),
      `${text}\n[[migrations]]\ntag = "v2"\nnew_sqlite_classes = ${CLASSES}\n`,
    );
  });

  it('gets the flag where its date is old, beside the flags that it has', () => {
    const rest = `\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ${CLASSES}\n`;
    assert.equal(
      extended('wrangler.toml', `compatibility_date = "2025-01-01"\n${rest}`),
      `compatibility_date = "2025-01-01"\ncompatibility_flags = ["enable_ctx_exports", "enable_weak_ref", "unhandled_rejection_after_microtask_checkpoint"]\n${rest}`,
    );
    assert.equal(
      extended(
        'wrangler.toml',
        `compatibility_flags = [\n  "nodejs_compat",\n]\ncompatibility_date = "2025-01-01"\n${rest}`,
      ),
      `compatibility_flags = [\n  "enable_ctx_exports", "enable_weak_ref", "unhandled_rejection_after_microtask_checkpoint", "nodejs_compat",\n]\ncompatibility_date = "2025-01-01"\n${rest}`,
    );
  });

  it('keeps Windows line ends', () => {
    const text = 'name = "a"\r\ncompatibility_date = "2026-04-01"\r\n';
    assert.doesNotMatch(extended('wrangler.toml', text), /[^\r]\n/);
  });

  it('is not changed where a migration cannot be appended', () => {
    assert.equal(
      extended('wrangler.toml', 'compatibility_date = "2026-04-01"\nmigrations = [{ tag = "v1" }]\n'),
      undefined,
    );
  });

  it('names the line of a mistake', () => {
    assert.throws(() => readConfig('wrangler.toml', 'name = "a"\nmain = oops\n'), /^Error: wrangler\.toml, line 2: /);
  });
});

describe('wrangler.jsonc', () => {
  it('gets a migration in the style of its file', () => {
    const text = `{
\t// my worker
\t"compatibility_date": "2026-04-01", // a date
\t"migrations": [
\t\t{ "tag": "v1", "new_sqlite_classes": ["A"] }, // the first
\t\t{ "tag": "v2", "deleted_classes": ["A"] } // the last
\t]
}
`;
    assert.equal(
      extended('wrangler.jsonc', text),
      text.replace(' // the last', `, // the last\n\t\t{ "tag": "v3", "new_sqlite_classes": ${CLASSES} }`),
    );
  });

  it('gets its first migration', () => {
    assert.equal(
      extended('wrangler.json', '{\n  "name": "a",\n  "compatibility_date": "2026-04-01"\n}\n'),
      `{\n  "name": "a",\n  "compatibility_date": "2026-04-01",\n  "migrations": [{ "tag": "v1", "new_sqlite_classes": ${CLASSES} }]\n}\n`,
    );
    assert.notEqual(extended('wrangler.json', '{"compatibility_date":"2026-04-01","migrations":[]}'), undefined);
    assert.notEqual(extended('wrangler.json', '{}'), undefined);
  });

  it('gets only the classes that no migration makes', () => {
    const text =
      '{ "compatibility_date": "2026-04-01", "migrations": [{ "tag": "v1", "new_sqlite_classes": ["QueueObject", "B"] }] }';
    assert.match(extended('wrangler.json', text), /"tag": "v2", "new_sqlite_classes": \["DirectoryObject", "Unique/);
  });

  it('says that a class was made without SQLite, which nothing can change', () => {
    const text = '{ "migrations": [{ "tag": "v1", "new_classes": ["QueueObject"] }] }';
    assert.deepEqual(needsOf(readConfig('wrangler.json', text)).withoutSqlite, ['QueueObject']);
  });

  it('counts classes as renamed and deleted', () => {
    const migrations = [
      { tag: 'v1', new_sqlite_classes: ['Q', ...OBJECT_CLASSES.slice(1)] },
      { tag: 'v2', renamed_classes: [{ from: 'Q', to: 'QueueObject' }] },
      { tag: 'v3', deleted_classes: ['WorkflowObject'] },
    ];
    const text = JSON.stringify({ compatibility_date: '2026-04-01', migrations });
    assert.deepEqual(needsOf(readConfig('wrangler.json', text)).classes, ['WorkflowObject']);
  });
});

describe('classes that a configuration declares by exports', () => {
  const entry = '{ "type": "durable-object", "storage": "sqlite" }';
  const complete = OBJECT_CLASSES.map((name) => `"${name}": ${entry}`).join(', ');
  const jsonc = (exports, more = '') =>
    `{\n  "compatibility_date": "2026-04-01", // a date\n  "exports": { ${exports} }${more}\n}\n`;

  it('are complete without a migration', () => {
    assert.deepEqual(needsOf(readConfig('wrangler.jsonc', jsonc(complete))), COMPLETE);
  });

  it('are added to exports, as wrangler takes either those or migrations', () => {
    const text = extended('wrangler.jsonc', jsonc(`"Mine": { "type": "durable-object", "storage": "legacy-kv" }`));
    const { exports, migrations } = readConfig('wrangler.jsonc', text).values;
    assert.deepEqual(Object.keys(exports), ['Mine', ...OBJECT_CLASSES]);
    assert.equal(migrations, undefined);
    assert.ok(text.includes('// a date'));
    const toml = 'compatibility_date = "2026-04-01"\n\n[exports.Mine]\ntype = "durable-object"\nstorage = "sqlite"\n';
    const added = extended('wrangler.toml', toml);
    assert.ok(added.startsWith(toml));
    assert.deepEqual({ ...readConfig('wrangler.toml', added).values.exports.QueueObject }, JSON.parse(entry));
    assert.equal(
      extended('wrangler.toml', toml.replace(/\[exports[\s\S]*/, 'exports = { Mine = { type = "worker" } }\n')),
      undefined,
    );
  });

  it('do not count when they are deleted, renamed or without SQLite', () => {
    const gone = [
      '"QueueObject": { "type": "durable-object", "state": "deleted" }',
      '"DirectoryObject": { "type": "durable-object", "state": "renamed", "renamed_to": "Other" }',
      '"UniqueLockObject": { "type": "durable-object", "storage": "legacy-kv" }',
      `"WorkflowObject": ${entry}`,
    ];
    const { classes, withoutSqlite } = needsOf(readConfig('wrangler.jsonc', jsonc(gone.join(', '))));
    assert.deepEqual([classes, withoutSqlite], [['QueueObject', 'DirectoryObject'], ['UniqueLockObject']]);
  });

  it('are those of an environment where it has any', () => {
    const config = readConfig(
      'wrangler.jsonc',
      jsonc(complete, `, "env": { "own": { "exports": { "Mine": ${entry} } }, "same": {} }`),
    );
    assert.deepEqual(partsOf(config), [undefined, 'own']);
    const result = readConfig('wrangler.jsonc', withQueue(config, needsOf(config, 'own'), 'own'));
    assert.deepEqual(Object.keys(result.values.env.own.exports), ['Mine', ...OBJECT_CLASSES]);
  });

  it('are shown as lines to add by hand', () => {
    const lines = snippet('jsonc', 'v1', OBJECT_CLASSES, undefined, true);
    assert.deepEqual(
      needsOf(readConfig('wrangler.json', `{ "compatibility_date": "2026-04-01", ${lines} }`)),
      COMPLETE,
    );
  });
});

describe('flags of an old compatibility date', () => {
  const flagsAt = (date, flags = []) =>
    needsOf(
      readConfig('wrangler.json', JSON.stringify({ compatibility_date: date, compatibility_flags: flags })),
    ).flags.map(({ flag }) => flag);

  it('are those that the date does not bring', () => {
    const all = ['enable_ctx_exports', 'enable_weak_ref', 'unhandled_rejection_after_microtask_checkpoint'];
    assert.deepEqual(flagsAt('2024-09-23'), all);
    assert.deepEqual(flagsAt('2025-05-05'), [all[0], all[2]]);
    assert.deepEqual(flagsAt('2025-11-17'), [all[2]]);
    assert.deepEqual(flagsAt('2026-03-03'), []);
  });

  it('are not set against the flag that means the opposite', () => {
    const opposites = ['no_unhandled_rejection_after_microtask_checkpoint', 'disable_weak_ref'];
    assert.deepEqual(flagsAt('2024-09-23', opposites), ['enable_ctx_exports']);
  });
});

describe('a Worker that a build writes', () => {
  for (const [main, by] of [
    ['.svelte-kit/cloudflare/_worker.js', 'SvelteKit'],
    ['./.open-next/worker.js', 'OpenNext'],
    ['dist/_worker.js/index.js', 'Astro or another framework'],
    ['@astrojs/cloudflare/entrypoints/server', 'Astro'],
    ['.output/server/index.mjs', 'Nuxt or Nitro'],
    ['out/worker.js', 'a build'],
    ['src/index.ts', undefined],
    ['dist/index.js', undefined],
    ['worker.js', undefined],
  ]) {
    it(`${main}: ${by ?? 'is written by hand'}`, () => assert.equal(builtBy(main, 'node_modules\n/out/\n'), by));
  }

  it('is left as it is by init, which says what works, in both formats', () => {
    for (const [file, text, service] of [
      ['wrangler.toml', 'name = "site"\nmain = ".open-next/worker.js"\n', 'service = "site-queue"'],
      ['wrangler.jsonc', '{ "name": "site", "main": ".open-next/worker.js" }', '"service":"site-queue"'],
    ]) {
      const folder = mkdtempSync(join(tmpdir(), 'tocsin-built-'));
      mkdirSync(join(folder, '.open-next'));
      writeFileSync(join(folder, '.open-next/worker.js'), 'export default {};');
      writeFileSync(join(folder, file), text);
      const { changes, byHand } = planInit(folder, { name: 'site', format: 'jsonc', tocsin: '1' });
      rmSync(folder, { recursive: true });
      assert.deepEqual(changes, []);
      assert.match(byHand[0].why, /written by OpenNext/);
      assert.ok(byHand[0].lines.includes(service) && byHand[0].lines.includes('Tocsin'), byHand[0].lines);
    }
  });
});

describe('an environment', () => {
  /** The configuration with the queue in each of its parts. */
  const everywhere = (file, text) => {
    const parts = partsOf(readConfig(file, text));
    const result = parts.reduce((before, env) => {
      const config = readConfig(file, before);
      const needs = needsOf(config, env);
      return needs.classes.length > 0 || needs.flags.length > 0 ? withQueue(config, needs, env) : before;
    }, text);
    for (const env of parts) assert.deepEqual(needsOf(readConfig(file, result), env), COMPLETE);
    return result;
  };
  const TOP = `\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ${CLASSES}\n`;

  it('that has migrations gets one of its own, as it inherits none', () => {
    const text = `compatibility_date = "2026-04-01"\n${TOP}\n[env.production]\nname = "p"\n\n[[env.production.migrations]]\ntag = "p4"\nnew_classes = ["Old"]\n\n[env.staging]\nname = "s"\n`;
    assert.deepEqual(partsOf(readConfig('wrangler.toml', text)), [undefined, 'production']);
    assert.equal(
      everywhere('wrangler.toml', text),
      `${text}\n[[env.production.migrations]]\ntag = "p5"\nnew_sqlite_classes = ${CLASSES}\n`,
    );
  });

  it('that has an old date or flags gets the flag beside those that it had', () => {
    const flags = 'compatibility_flags = ["nodejs_compat"]';
    const all =
      'compatibility_flags = ["enable_ctx_exports", "enable_weak_ref", "unhandled_rejection_after_microtask_checkpoint", "nodejs_compat"]';
    const date = 'compatibility_date = "2025-01-01"\n';
    const text = (first, second) =>
      `compatibility_date = "2026-04-01"\n${flags}\n${TOP}\n[env.old] # kept\n${date}${first}\n[env.own]\n${date}${second}\n\n[env.own.vars]\n${flags}\n`;
    const inherited =
      'compatibility_flags = ["nodejs_compat", "enable_ctx_exports", "enable_weak_ref", "unhandled_rejection_after_microtask_checkpoint"]\n';
    assert.equal(everywhere('wrangler.toml', text('', flags)), text(inherited, all));
  });

  it('is extended in JSON, too', () => {
    const text = `{
  "compatibility_date": "2026-04-01",
  "migrations": [{ "tag": "v1", "new_sqlite_classes": ${CLASSES} }],
  "env": {
    "production": {
      "compatibility_date": "2025-01-01", // old
      "migrations": [{ "tag": "p1", "new_sqlite_classes": ["A"] }]
    }
  }
}
`;
    const after = readConfig('wrangler.jsonc', everywhere('wrangler.jsonc', text)).values.env.production;
    assert.deepEqual(after.compatibility_flags, [
      'enable_ctx_exports',
      'enable_weak_ref',
      'unhandled_rejection_after_microtask_checkpoint',
    ]);
    assert.deepEqual(
      after.migrations.map(({ tag }) => tag),
      ['p1', 'p2'],
    );
  });

  it('is not changed where it is written in one line', () => {
    const text = `compatibility_date = "2026-04-01"\nenv = { production = { migrations = [{ tag = "a" }] } }\n`;
    const config = readConfig('wrangler.toml', text);
    assert.equal(withQueue(config, needsOf(config, 'production'), 'production'), undefined);
    assert.match(snippet('toml', 'b', ['A'], 'my env'), /^\[\[env\."my env"\.migrations\]\]/);
  });
});

it('the tag of a migration continues as the project counts', () => {
  const cases = [
    [[], 'v1'],
    [['v1', 'v9'], 'v10'],
    [['shop-01'], 'shop-02'],
    [['initial'], 'tocsin-v1'],
    [['2024-01-20'], 'tocsin-v1'],
    [['tocsin-v1', 'x'], 'tocsin-v2'],
    [['v2', 'v1'], 'v3'],
  ];
  for (const [tags, next] of cases) assert.equal(nextTag(tags), next, tags.join());
});

describe('the main module', () => {
  const EXPORTS = `export { ${QUEUE_EXPORTS.join(', ')} } from 'tocsin/queue';`;
  const adapted = (text, path = 'src/index.ts') => {
    const result = adaptModule(text, path, './tocsin');
    if (result.kind === 'changed') assert.equal(adaptModule(result.text, path, './tocsin').kind, 'complete');
    return result;
  };

  it('is wrapped around whatever object it exports', () => {
    const defaults = {
      app: 'const app = new Hono();\n',
      Entry: 'class Entry extends WorkerEntrypoint {}\n',
      'new App()': 'class App { scheduled() {} }\n',
      '{ fetch() {} }': '',
      '{ fetch() {} } satisfies ExportedHandler<Env>': '',
      'withSentry(options, { fetch() {} })': '',
      'new Hono().get("/", (c) => c.text("<b>"))': '',
    };
    for (const [value, before] of Object.entries(defaults)) {
      const { text } = adapted(`import { x } from 'x';\n${before}export default ${value};\n`);
      assert.equal(
        text,
        `import { x } from 'x';\nimport { tocsin } from './tocsin';\n\n${EXPORTS}\n${before}export default tocsin.worker(${value});\n`,
      );
    }
  });

  it('gets its first import above its first comment', () => {
    assert.match(
      adapted('/** Mine. */\nexport default { fetch() {} };\n').text,
      /^import \{ tocsin \}.*\n\nexport .*\n\n\/\*\* Mine/,
    );
  });

  it('may be JavaScript with JSX', () => {
    assert.equal(
      adapted('const app = { fetch: () => <p /> };\nexport default app;\n', 'src/index.jsx').kind,
      'changed',
    );
  });

  it('gets the exports that are missing, when it has the queue already', () => {
    const { text } = adapted(
      "import { tocsin } from './t';\nexport { QueueObject } from 'tocsin/queue';\nexport default tocsin.worker(app);\n",
    );
    assert.match(text, /export \{ DirectoryObject, Tocsin, [^}]*WorkflowObject \} from/);
    assert.equal(text.match(/tocsin\.worker/g).length, 1);
  });

  it('is not changed where wrapping is not safe, with the lines to add', () => {
    const cases = {
      'export default class extends WorkerEntrypoint {}': /a class or a function/,
      'class App {}\nexport default App;': /App is a function, or a class that extends nothing/,
      'export default () => {}': /a class or a function/,
      'addEventListener("fetch", () => {});': /no default export/,
      'export { app as default } from "./app";': /no default export/,
      'const tocsin = 1;\nexport default {};': /uses the name tocsin/,
      'export class QueueObject {}\nexport default {};': /QueueObject of its own/,
      'export default {': /cannot be parsed/,
    };
    for (const [text, why] of Object.entries(cases)) {
      const result = adapted(text);
      assert.equal(result.kind, 'manual', text);
      assert.match(result.why, why);
      assert.match(result.lines, /export default tocsin\.worker/);
    }
  });

  it('imports in the way of its other imports', () => {
    assert.equal(importOf("import a from './a';", 'tocsin', '.ts'), './tocsin');
    assert.equal(importOf("import a from './a.js';", 'tocsin', '.ts'), './tocsin.js');
    assert.equal(importOf("import a from '../a.ts';", 'tocsin', '.ts'), './tocsin.ts');
  });
});

describe('package.json', () => {
  it('gets what is missing and keeps what is there', () => {
    const text =
      '{\n    "name": "a",\n    "scripts": { "dev": "mine" },\n    "devDependencies": { "tocsin": "0.0.1" }\n}\n';
    const wanted = {
      scripts: { dev: 'tocsin dev', test: 'vitest' },
      dependencies: { tocsin: '^1' },
      allowScripts: { a: true },
    };
    const { text: after, added } = extendPackage(text, wanted);
    assert.deepEqual(added, [
      ['scripts', 'test'],
      ['allowScripts', 'a'],
    ]);
    assert.deepEqual(JSON.parse(after), {
      ...{ name: 'a', scripts: { dev: 'mine', test: 'vitest' } },
      ...{ devDependencies: { tocsin: '0.0.1' }, allowScripts: { a: true } },
    });
    assert.match(after, /^ {4}"scripts": \{ "dev": "mine", "test": "vitest" \},$/m);
    assert.equal(extendPackage(after, wanted).text, after);
  });

  it('gets a name that npm and Cloudflare take', () => {
    assert.equal(packageName('My Shop_2'), 'my-shop-2');
    assert.equal(packageName('…'), 'my-queue');
  });
});

describe('a new project', () => {
  it('has the versions of tools that this project is tested with', () => {
    const { devDependencies, allowScripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const [name, version] of Object.entries(DEV_DEPENDENCIES)) assert.equal(devDependencies[name], version, name);
    assert.deepEqual([...INSTALL_SCRIPTS], Object.keys(allowScripts));
  });

  it('has a configuration that needs nothing, in both formats', () => {
    for (const format of ['toml', 'jsonc']) {
      const config = readConfig(`wrangler.${format}`, wranglerConfig(format, 'shop'));
      assert.deepEqual(needsOf(config), COMPLETE);
      assert.equal(config.values.name, 'shop');
      assert.deepEqual(config.values.compatibility_flags, ['no_web_socket_compression']);
    }
  });

  it('has a date that every wrangler since 4.86 knows', () => {
    assert.ok(COMPATIBILITY_DATE <= '2026-05-03');
    assert.equal(dateOf('1.20261102.1'), '2026-11-02');
  });

  it('shows the lines to add by hand in both formats', () => {
    assert.deepEqual(
      needsOf(readConfig('wrangler.json', `{ "compatibility_date": "2026-04-01", ${snippet('jsonc')} }`)),
      COMPLETE,
    );
    assert.deepEqual(
      needsOf(readConfig('wrangler.toml', `compatibility_date = "2026-04-01"\n${snippet('toml')}`)),
      COMPLETE,
    );
  });
});
