/**
 * The `repository` member of a manifest. Only a run of GitHub's own knows where the project lives. npm compares it with
 * the provenance of what is published, and refuses another.
 * @param {NodeJS.ProcessEnv} environment
 * @returns {{ repository?: { type: 'git', url: string } }} empty anywhere else
 */
export function repositoryOf({ GITHUB_SERVER_URL, GITHUB_REPOSITORY }) {
  if (!GITHUB_SERVER_URL || !GITHUB_REPOSITORY) return {};
  return { repository: { type: 'git', url: `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` } };
}
