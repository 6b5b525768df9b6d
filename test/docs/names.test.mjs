// What the documents name exists: commands with their options, scripts, variables, calls of the client.
import assert from 'node:assert/strict';
import { globSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lexer } from 'marked';
import { load as loadCli } from '../cli/cli.mjs';
import { root } from './dev.mjs';
import { documents } from './snippets.mjs';
import { load, membersOf, read } from './source.mjs';
import { codeOf, commandsIn, everywhere, section } from './text.mjs';

const { createProgram } = await loadCli('program.ts');
const program = createProgram({ env: {} }, '0.0.0');
const { TocsinClient } = await load('client/index.ts');

/** What is wrong in the documents, with the place of each. */
const wrong = (found, problem) =>
  found.flatMap(({ path, text }) => {
    const said = problem(text);
    return said ? [`${path}: ${text}: ${said}`] : [];
  });

describe('commands of tocsin that the documents name', () => {
  /** What is wrong with the words after `tocsin`. */
  function problemOf(words) {
    let command = program;
    let named = 0;
    for (const word of words) {
      const below = command.commands.find((one) => one.name() === word);
      if (!below) break;
      command = below;
      named++;
    }
    const [first] = words;
    if (named === 0 && /^[a-z]/.test(first)) return `there is no command ${first}`;
    // What these do not know goes to wrangler.
    if (command.registeredArguments.some((argument) => argument.name() === 'wrangler')) return undefined;
    const options = [...command.options.map(({ long }) => long), '--help'];
    return words
      .filter((word) => word.startsWith('--'))
      .map((word) => word.replace(/[=,.].*/, ''))
      .filter((option) => !options.includes(option))
      .map((option) => `tocsin ${command.name()} has no option ${option}`)[0];
  }

  /** The words after `tocsin`, without what is in quotes, a comment, or another command. */
  const wordsOf = (text) =>
    /(?:^|\s)tocsin ((?!\/)[^|#;&]+)/
      .exec(text.replace(/'[^']*'|"[^"]*"/g, 'x').replace(/\s#\s.*/, ''))?.[1]
      .trim()
      .split(/\s+/);

  it('exist, with their options', () => {
    const named = everywhere((code) => [...commandsIn(code), ...code.spans]).filter(({ text }) => wordsOf(text));
    assert.ok(named.length > 40, `only ${named.length} were found`);
    assert.deepEqual(
      wrong(named, (text) => problemOf(wordsOf(text))),
      [],
    );
  });
});

describe('commands of tocsin that the dashboard and the program name', () => {
  it('exist', () => {
    const paths = globSync('src/{cli,ui}/**/*.{ts,tsx}', { cwd: root });
    const named = paths.flatMap((path) =>
      Array.from(read(path).matchAll(/npx tocsin ([a-z][\w-]*)/g), ([, text]) => ({ path, text })),
    );
    assert.ok(named.length > 10, `only ${named.length} were found`);
    const known = program.commands.map((one) => one.name());
    assert.deepEqual(
      wrong(named, (text) => (known.includes(text) ? undefined : 'there is no such command')),
      [],
    );
  });
});

describe('scripts that the documents run', () => {
  it('are in the package, or in a project that init starts', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const started = /scripts: \{([^}]*)\}/.exec(read('src/cli/project/plan.ts'))[1];
    const known = new Set([...Object.keys(scripts), ...Array.from(started.matchAll(/(\w+):/g), ([, name]) => name)]);
    const named = everywhere((code) => [...commandsIn(code), ...code.spans]).filter(({ text }) =>
      /\bnpm (run|start|test)\b/.test(text),
    );
    assert.ok(named.length > 10);
    assert.deepEqual(
      wrong(named, (text) => {
        const names = Array.from(text.matchAll(/\bnpm (?:run ([\w:]+)|(start|test)\b)/g), ([, run, own]) => run ?? own);
        return names.find((name) => !known.has(name));
      }),
      [],
    );
  });
});

describe('variables', () => {
  const declared = membersOf('config.ts', 'Env').filter(
    (name) => !new RegExp(`^  ${name}\\?: DurableObjectNamespace;`, 'm').test(read('src/config.ts')),
  );

  it('of the deployment are all in the documents', () => {
    const shown = new Set(
      documents().flatMap((path) => codeOf(path).spans.flatMap((span) => span.match(/\w+/g) ?? [])),
    );
    const blocks = documents().flatMap((path) => codeOf(path).blocks.map(({ text }) => text));
    assert.ok(declared.length > 15);
    assert.deepEqual(
      declared.filter((name) => !shown.has(name) && !blocks.some((text) => text.includes(name))),
      [],
    );
  });

  it('that the page Configuration lists are those of the deployment', () => {
    const list = section('docs/reference/configuration.md', '## Variables and secrets');
    const listed = Array.from(list.matchAll(/^- ((?:.|\n )*)/gm), ([, line]) => line).flatMap((line) =>
      Array.from(line.split(': ')[0].matchAll(/`([A-Z_]+)`/g), ([, name]) => name),
    );
    // Who sets the one is a program; the page about metrics has the other.
    const elsewhere = ['LOCALHOST_SECRET', 'ANALYTICS'];
    assert.deepEqual(listed.sort(), declared.filter((name) => !elsewhere.includes(name)).sort());
  });
});

describe('identifiers in the text', () => {
  const files = ['src', 'examples', 'bench', '.ci', '.github'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((path) => /\.(tsx?|mjs|js|toml|jsonc|yml)$/.test(path) && !path.includes('node_modules'))
      .map((path) => join(folder, path)),
  );
  const code = files.map(read).join('\n');
  const words = new Set(code.match(/\w+/g));
  const headers = new Set(code.toLowerCase().match(/[a-z]+(?:-[a-z]+)+/g));

  /** Names of others: of wrangler, of Cloudflare, of other queues. */
  const OTHERS = new Set([
    ...['CLOUDFLARE_ACCOUNT_ID', 'CLOUDFLARE_API_TOKEN', 'cpu_ms', 'keep_names', 'waitForEvent', 'sendEvent'],
    ...['delay_seconds', 'maxDelay', 'jitter_ms', 'deleteCompleted', 'getChildrenValues', 'removeOnComplete'],
  ]);
  /** Made of parts: `ce_` and the name of an attribute, `push_` and that of a handler, metrics, which a test of their own has. */
  const MADE = /^(ce|push|ojs)_/;
  /** Its left side has the names of other queues. */
  const MIGRATING = 'docs/start/migrating.md';

  const IDENTIFIER = /\b(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]*)\b(?!_)/g;
  const spansIn = (text) => Array.from(text.matchAll(/`([^`]+)`/g), ([, span]) => span);

  it('are in the code, or in a block of the page', () => {
    const named = everywhere(({ spans }) => spans.flatMap((span) => span.match(IDENTIFIER) ?? []));
    assert.ok(named.length > 1000);
    const unknown = named
      .filter(({ path, text }) => path !== MIGRATING && !OTHERS.has(text) && !MADE.test(text) && !words.has(text))
      .filter(({ path, text }) => !codeOf(path).blocks.some((block) => block.text.includes(text)));
    assert.deepEqual(unknown, []);
  });

  it('of this project, beside those of another queue, are in the code', () => {
    const blocks = lexer(read(MIGRATING));
    const ours = blocks.flatMap(({ type, items, rows }) => {
      if (type === 'list') return items.map(({ text }) => text.split('→')[1] ?? '');
      return type === 'table' ? rows.map((row) => row[1].text) : [];
    });
    const named = ours.flatMap((text) => spansIn(text).flatMap((span) => span.match(IDENTIFIER) ?? []));
    assert.ok(named.length > 50, `only ${named.length} were found`);
    assert.deepEqual(
      named.filter((name) => !words.has(name) && !OTHERS.has(name)),
      [],
    );
  });

  it('of headers are in the code', () => {
    const named = everywhere(({ spans }) =>
      spans.flatMap((span) => span.match(/\b(?:X|OJS|Tocsin)(?:-[A-Za-z]+)+/g) ?? []),
    );
    assert.ok(named.length > 20);
    assert.deepEqual(
      named.filter(({ text }) => !headers.has(text.toLowerCase())),
      [],
    );
  });

  it('of messages are what the server answers', () => {
    const list = section('docs/operate/operations.md', '## Configuration mistakes').match(
      /^- `[^`]+`|^- \d{3} `[^`]+`/gm,
    );
    const parts = list.flatMap((line) => line.replace(/^- (?:\d{3} )?`(?:\w+: )?|`$/g, '').split('…'));
    const said = parts.map((part) => part.replace(/"| \d+/g, '').trim()).filter((part) => / /.test(part));
    assert.ok(said.length > 4);
    assert.deepEqual(
      said.filter((part) => !code.includes(part)),
      [],
    );
  });
});

describe('calls of the client', () => {
  const client = new TocsinClient({ url: 'http://localhost' });
  /** The calls of an object: the methods of its classes, or its own where it is of none. */
  function callsOf(object) {
    const names = new Set();
    const isPlain = Object.getPrototypeOf(object) === Object.prototype;
    for (let one = isPlain ? object : Object.getPrototypeOf(object); one; one = Object.getPrototypeOf(one)) {
      if (one === Object.prototype) break;
      for (const name of Object.getOwnPropertyNames(one)) if (typeof object[name] === 'function') names.add(name);
    }
    names.delete('constructor');
    return [...names];
  }
  const groups = Object.keys(client);

  it('that the documents name exist', () => {
    const named = everywhere(({ spans }) =>
      spans.flatMap((span) => span.match(/\btocsin(\.[a-zA-Z]+)+(?=\(|$)/g) ?? []),
    )
      // What `createTocsin` returns has these beside the client.
      .filter(({ text }) => !/^tocsin\.(worker|app|client)\b/.test(text))
      .filter(({ text }) => !/^tocsin\.[a-z]+_[a-z]+$|^tocsin\.(crash|job|unreachable)\b/.test(text));
    assert.ok(named.length > 10, `only ${named.length} were found`);
    assert.deepEqual(
      wrong(named, (text) => {
        const [, ...path] = text.split('.');
        let at = client;
        for (const name of path) {
          if (at === undefined || at === null || !(name in Object(at))) return `there is no ${name}`;
          at = at[name];
        }
        return undefined;
      }),
      [],
    );
  });

  /** Each call that the page lists, such as `queues.pause`; where several stand in a line, the first one names their group. */
  function listed() {
    const lines = section('docs/reference/client.md', '## Calls').match(/^- `.*(?:\n {2}.*)*/gm) ?? [];
    return lines.flatMap((line) => {
      const [before] = line.split(/:(?=\s)/);
      let group = '';
      const names = Array.from(before.matchAll(/`([a-zA-Z.]+)(?=[`(])/g), ([, name]) => name).map((name) => {
        if (name.includes('.')) group = name.slice(0, name.indexOf('.') + 1);
        return name.includes('.') ? name : group + name;
      });
      const inBoth = names.at(-1) === 'jobs' ? names.slice(0, -1) : undefined;
      return inBoth?.flatMap((name) => [name, `jobs.${name}`]) ?? names;
    });
  }

  it('are all on the page about the client', () => {
    const calls = [
      ...callsOf(client),
      ...groups.flatMap((group) => callsOf(client[group]).map((name) => `${group}.${name}`)),
    ];
    const page = listed();
    assert.deepEqual(
      calls.filter((name) => !page.includes(name)),
      [],
    );
    // `runWorker` is a function of its own.
    assert.deepEqual(
      page.filter((name) => !calls.includes(name) && name !== 'runWorker'),
      [],
    );
  });
});
