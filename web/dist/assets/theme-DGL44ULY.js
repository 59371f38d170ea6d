{let e=null;try{e=localStorage.getItem("glasshouse-theme")}catch{}(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}
