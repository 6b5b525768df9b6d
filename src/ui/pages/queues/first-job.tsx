import { Code } from '../../components/json';
import { Empty } from '../../components/page';
import { curlKey } from '../../core/api';
import { API, href } from '../../core/router';
import './queues.css';

export const FirstJob = ({ title }: { title: string }) => (
  <Empty icon="queues" title={title}>
    <div class="first-job">
      <p>A queue is created by its first job. Enqueue one from a terminal:</p>
      <Code label="the command" text={command()} />
      <p>
        It appears here immediately. A handler Worker or a worker that pulls then runs it; until one does, the job{' '}
        <a href={href('jobs')}>says what it waits for</a>.
      </p>
    </div>
  </Empty>
);

function command(): string {
  const job = JSON.stringify({ type: 'email.send', args: ['ada@example.com'] });
  return `curl ${new URL('jobs', API)}${curlKey()} \\\n  -H 'Content-Type: application/json' \\\n  -d '${job}'`;
}
