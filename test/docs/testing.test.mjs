// The page about tests, word for word: its Worker and its tests compile, and the tests pass.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { filesOf, ShownProject } from './shown-project.mjs';

const { files, rest } = filesOf('docs/guides/testing.md');

describe('the tests that the page shows', { timeout: 900_000 }, () => {
  let project;
  before(() => {
    project = new ShownProject(files);
    const [matchers, types] = rest;
    project.write('src/worker.d.ts', types);
    project.write(
      'src/matchers.ts',
      `import { expect } from 'vitest';\nimport { testQueue } from 'tocsin/testing/vitest';\nconst queue = testQueue();\n${matchers}\nexport {};\n`,
    );
  });
  after(() => project?.remove());

  it('compile', () => project.compile());

  it('pass', () => assert.match(project.test(), /9 passed/));
});
