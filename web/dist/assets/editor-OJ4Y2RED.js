import{$ as b,_ as a,aa as c,ba as d}from"/ui/assets/chunk-DQ2VVHN4.js";import"/ui/assets/chunk-PY2GMOMY.js";export{c as decorations,a as highlighting,d as showCode,b as theme};
