/** What a page shows before it has anything, and where there is nothing to show: the frame has it, too. */
import type { ComponentChildren } from 'preact';
import type { ApiFailure, Resource } from '../core/api';
import { refusal } from '../core/live';
import { Button } from './button';
import { Icon, type IconName } from './icon';

/** Grey bars in the place of what is being loaded. @param rows how many, about as many as will come */
export const Skeleton = ({ rows = 6, height }: { rows?: number; height?: number }) => (
  <div class="skeleton" role="status" aria-label="Loading">
    {Array.from({ length: rows }, (_, index) => (
      <i key={index} style={height ? { height: `${height}px` } : {}} />
    ))}
  </div>
);

export interface EmptyProps {
  icon?: IconName;
  title: string;
  /** What would make something appear here: a text, or children. */
  text?: string;
  children?: ComponentChildren;
}

export const Empty = ({ icon = 'queues', title, text, children = text }: EmptyProps) => (
  <div class="empty">
    <Icon name={icon} size={28} />
    <h2>{title}</h2>
    {children && <div class="text">{children}</div>}
  </div>
);

export const Failure = ({ error, retry }: { error: ApiFailure; retry?: (() => void) | undefined }) => (
  <div class="failure" role="alert">
    <Icon name="failures" size={20} />
    <div>
      <strong>{error.message}</strong>
      {error.hint && <p>{error.hint}</p>}
      {error.requestId && <p class="faint">Request {error.requestId}</p>}
    </div>
    {retry && <Button label="Try again" onClick={retry} />}
  </div>
);

/** Stands above what should change by itself, where the server refuses to. */
export const LiveRefused = () =>
  refusal.value === '' ? null : <p class="note amber">Live updates are off: {refusal.value}</p>;

/** A resource once it is there; before that a skeleton, and what went wrong. */
export function Loaded<T>(props: {
  of: Pick<Resource<T>, 'data' | 'error' | 'reload'>;
  children: (data: T) => ComponentChildren;
  loading?: ComponentChildren;
}) {
  const { of: resource, children, loading } = props;
  return (
    <>
      {resource.error && <Failure error={resource.error} retry={resource.reload} />}
      {resource.data !== undefined ? children(resource.data) : !resource.error && (loading ?? <Skeleton />)}
    </>
  );
}
