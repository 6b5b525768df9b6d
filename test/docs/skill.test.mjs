// The skill for coding agents: short, in the package, and true. Its Worker compiles, its tests pass, its commands run.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cli, load, NODE } from '../cli/cli.mjs';
import { dev, root, until } from './dev.mjs';
import { filesOf, ShownProject } from './shown-project.mjs';
import { documents, modulesOf, prepare, snippetsOf } from './snippets.mjs';
import { codeOf, commandsIn } from './text.mjs';

const SKILL = 'docs/skill/SKILL.md';
const MAX_LINES = 200;

/** Bounds of what agents read of a skill: https://agentskills.io/specification. */
const MAX_DESCRIPTION = 1024;

/** Commands that start a project or serve it: the tests of the package run them. */
const ELSEWHERE = ['npm run dev', 'npx tocsin init --yes'];

const text = readFileSync(join(root, SKILL), 'utf8');
const { files, rest } = filesOf(SKILL);

describe('the skill for coding agents', () => {
  it(`has at most ${MAX_LINES} lines`, () => {
    assert.ok(text.trimEnd().split('\n').length <= MAX_LINES);
  });

  it('begins with its name and a description that says when to read it', () => {
    const [, name, description] = /^---\nname: (\S+)\ndescription: >-\n((?: {2}.*\n)+)---\n/.exec(text);
    assert.equal(name, 'tocsin');
    assert.ok(description.length <= MAX_DESCRIPTION);
    assert.match(description, /\bUse it\b/);
  });

  it('is the only document in the package', () => {
    const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      stdio: 'pipe',
    });
    const [{ files: entries }] = JSON.parse(packed);
    const paths = entries.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
    assert.deepEqual(paths, [SKILL]);
  });

  it('is checked as every document is, and all of its code', () => {
    assert.ok(documents().includes(SKILL));
    const checked = [...snippetsOf(SKILL), ...modulesOf(SKILL)].map((snippet) => snippet.text);
    assert.deepEqual(
      rest.filter((block) => !checked.includes(block)),
      [],
    );
    assert.deepEqual([...files.keys()], ['src/tocsin.ts', 'src/index.ts', 'test/orders.test.ts']);
    assert.deepEqual([...new Set(codeOf(SKILL).blocks.map(({ lang }) => lang))].sort(), ['sh', 'ts']);
  });
});

describe('the Worker of the skill', { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-skill-'));
  let project;
  let server;

  before(async () => {
    project = new ShownProject(files);
    const { TEST_TYPES, vitestConfig } = await load('project/templates.ts');
    project.write('vitest.config.ts', vitestConfig('wrangler.toml'));
    project.write('test/env.d.ts', TEST_TYPES);
    server = await dev([project.forDev()], { state: join(folder, 'state'), registry: join(folder, 'registry') });
  });
  after(async () => {
    await server?.stop();
    project?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs a command in a shell. @returns {Promise<string>} what it printed; it must succeed */
  async function run(command, variables = {}) {
    const text = command.replace('npx tocsin', `'${NODE}' '${await cli()}'`);
    const env = { ...process.env, CI: 'true', TOCSIN_URL: server.url, TOCSIN_KEY: '', ...variables };
    return new Promise((resolve, reject) => {
      // An unknown variable ends the shell.
      execFile('sh', ['-uc', text], { cwd: folder, env }, (error, stdout, stderr) => {
        if (error) reject(new Error(`${command}: ${stdout}${stderr}`));
        else resolve(stdout);
      });
    });
  }

  const jobOf = async (id) => (await server.call('GET', `/jobs/${id}`)).job;

  it('compiles, with its tests', () => project.compile());

  it('passes its tests', () => assert.match(project.test(), /3 passed/));

  it('is operated with the commands that the skill shows', async () => {
    const { id: ID } = await (await fetch(`${server.url}/17`)).json();
    const waits = (id, reason) =>
      until(`the reason ${reason}`, 20_000, async () => (await jobOf(id)).waiting_for?.reason === reason);
    await waits(ID, 'signal');
    const mail = { type: 'mail.send', args: ['nowhere', 'Hello'], options: { queue: 'mail' } };
    const { id: dead } = (await server.call('POST', '/jobs', mail)).job;
    await until('the dead letter', 20_000, async () => (await jobOf(dead)).state === 'discarded');

    const printed = new Map();
    const commands = commandsIn(codeOf(SKILL)).filter((command) => !ELSEWHERE.includes(command));
    assert.ok(commands.length >= 10);
    for (const command of commands) {
      const [, name] = /^npx tocsin ([a-z ]+)/.exec(command);
      printed.set(name.trim(), await run(command, { ID }));
    }
    assert.match(printed.get('why'), /waits for the signal approved/);
    assert.match(printed.get('failures'), /DeadLetterError: nowhere is not an address/);
    assert.ok(printed.get('dead').includes(dead));
    assert.match(printed.get('dead retry'), /1 of 1 retried/);
    // After the approval the order sleeps for three days.
    await waits(ID, 'snoozed');
  });

  it('takes jobs from the client that the skill shows', async () => {
    const [snippet] = snippetsOf(SKILL).filter((one) => rest.includes(one.text));
    Object.assign(process.env, { TOCSIN_URL: server.url, TOCSIN_KEY: 'none' });
    const shown = await prepare(join(folder, 'run'), [snippet]);
    await shown.run(snippet.name);
    const { jobs } = await server.call('GET', '/jobs?type=mail.send&state=completed&queue=mail');
    assert.deepEqual(
      jobs.filter(({ args }) => args[1] === 'Hello').map(({ result }) => result),
      [{ accepted: 'ada@example.com' }],
    );
  });
});
