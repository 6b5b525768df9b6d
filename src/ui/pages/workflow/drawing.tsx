/** The graph: lines in an SVG, and above them focusable links for jobs, in the order of the layers. */
import { useMemo } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { duration, number } from '../../core/format';
import { href, segment, withQuery } from '../../core/router';
import { type GraphNode, tookOf } from './graph';
import { layOut, NODE_HEIGHT, NODE_WIDTH } from './layout';
import { STATES } from './state';

export function Drawing(props: {
  nodes: readonly GraphNode[];
  critical: ReadonlySet<string>;
  progress: ReadonlyMap<string, number>;
  now: number;
}) {
  const { nodes, critical, progress, now } = props;
  const shape = nodes.map(({ key, after }) => `${key}<${after.join()}`).join('\n');
  const { width, height, nodes: placed, edges } = useMemo(() => layOut(nodes), [shape]);
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without a pointer it is scrolled by keys
    <section class="graph" aria-label="Graph of the workflow" tabIndex={0}>
      <div style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          {edges.map(({ from, to, path }) => (
            <path
              key={`${from}>${to}`}
              d={path}
              class={[
                critical.has(from) && critical.has(to) && 'critical',
                byKey.get(to)?.kind === 'callback' && 'call',
                isDone(byKey, from) && 'passed',
              ]
                .filter(Boolean)
                .join(' ')}
            />
          ))}
        </svg>
        {placed.map(({ node: { key }, x, y }) => {
          const node = byKey.get(key);
          if (!node || node.kind === 'point') return null;
          const done = node.step?.job_id ? progress.get(node.step.job_id) : undefined;
          return <Node key={key} of={node} isCritical={critical.has(key)} {...{ x, y, now, done }} />;
        })}
      </div>
    </section>
  );
}

/** A point is done when all before it are. */
function isDone(byKey: ReadonlyMap<string, GraphNode>, key: string): boolean {
  const node = byKey.get(key);
  return node?.step ? node.step.state === 'completed' : !!node?.after.every((one) => isDone(byKey, one));
}

function Node(props: {
  of: GraphNode;
  x: number;
  y: number;
  isCritical: boolean;
  now: number;
  done: number | undefined;
}) {
  const { of: node, x, y, isCritical, now, done } = props;
  const { step, kind, label, called } = node;
  const state = step?.state ?? 'waiting';
  const [tone, icon] = STATES[state] ?? ['neutral', 'available'];
  const ms = tookOf(step, now);
  const count = kind === 'many' ? (step?.steps?.length ?? 0) : 0;
  const ended = step?.steps?.filter((one) => one.state === 'completed').length ?? 0;
  const content = (
    <>
      <Icon name={icon} size={15} />
      <span class="label">
        <bdi>{label}</bdi>
        <small>
          {called && `${called}: `}
          {state}
          {count > 0 && `, ${number(ended)} of ${number(count)}`}
          {state === 'active' && done !== undefined && done > 0 && ` ${Math.round(done)} %`}
          {ms > 0 && ` · ${duration(ms)}`}
        </small>
      </span>
    </>
  );
  const look = {
    class: `node ${tone}${isCritical ? ' critical' : ''}${kind === 'callback' ? ' call' : ''}`,
    title: `${label === step?.type ? '' : `${label}, `}${step?.type}: ${state}${isCritical ? ', on the critical path' : ''}`,
    style: {
      left: `${x}px`,
      top: `${y - NODE_HEIGHT / 2}px`,
      width: `${NODE_WIDTH}px`,
      height: `${NODE_HEIGHT}px`,
    },
  };
  const to =
    kind === 'many' ? withQuery({ tab: 'steps' }) : step?.job_id ? href(`jobs/${segment(step.job_id)}`) : undefined;
  return to ? (
    <a {...look} href={to}>
      {content}
    </a>
  ) : (
    <div {...look}>{content}</div>
  );
}
