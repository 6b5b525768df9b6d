import type { ComponentChildren, ComponentType, JSX } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';
import { asFailure } from '../core/api';
import { url } from '../core/router';
import { Failure } from './state';

type Load<P> = () => Promise<{ default: ComponentType<P> }>;

const loaded = new Map<unknown, unknown>();

/** A component whose code is loaded when it is first shown. @param props.waiting stands there until then */
export function Lazy<P>({ load, waiting, ...props }: { load: Load<P>; waiting?: ComponentChildren } & P) {
  const [, setReady] = useState(false);
  const [missing, setMissing] = useState<unknown>();
  const [broken, reset] = useErrorBoundary();
  useEffect(() => {
    if (loaded.has(load)) return;
    load().then(({ default: component }) => {
      loaded.set(load, component);
      setReady(true);
    }, setMissing);
  }, [load]);
  const Component = loaded.get(load) as ComponentType<P> | undefined;
  if (broken) return <Failure error={asFailure(broken)} retry={reset} />;
  // After a deploy the scripts have other names; the page itself must be reloaded.
  if (missing) return <Failure error={asFailure(missing)} retry={() => window.location.assign(url.value)} />;
  return Component ? <Component {...(props as unknown as P & JSX.IntrinsicAttributes)} /> : waiting;
}
